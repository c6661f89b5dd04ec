"""Names that a C or CUDA compiler has before it reads a kernel; those of a pattern are not listed.

``tests/hostile/test_names.py`` asks nvcc and g++ for all of them: a name that a header has and
that is not refused turns it red.
"""

from __future__ import annotations

import re


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


MACROS = _words("""
    ADJ_ESTERROR ADJ_FREQUENCY ADJ_MAXERROR ADJ_MICRO ADJ_NANO ADJ_OFFSET ADJ_OFFSET_SINGLESHOT
    ADJ_OFFSET_SS_READ ADJ_SETOFFSET ADJ_STATUS ADJ_TAI ADJ_TICK ADJ_TIMECONST
    AIO_PRIO_DELTA_MAX BC_BASE_MAX BC_DIM_MAX BC_SCALE_MAX BC_STRING_MAX BIG_ENDIAN BOOL_MAX
    BOOL_WIDTH BUFSIZ BYTE_ORDER CHARCLASS_NAME_MAX CLOCKS_PER_SEC CLOCK_BOOTTIME
    CLOCK_BOOTTIME_ALARM CLOCK_MONOTONIC CLOCK_MONOTONIC_COARSE CLOCK_MONOTONIC_RAW
    CLOCK_PROCESS_CPUTIME_ID CLOCK_REALTIME CLOCK_REALTIME_ALARM CLOCK_REALTIME_COARSE CLOCK_TAI
    CLOCK_THREAD_CPUTIME_ID COLL_WEIGHTS_MAX DECIMAL_DIG DELAYTIMER_MAX EOF EXIT_FAILURE
    EXIT_SUCCESS EXPR_NEST_MAX FD_CLR FD_ISSET FD_SET FD_SETSIZE FD_ZERO FILENAME_MAX FOPEN_MAX
    HOST_NAME_MAX HUGE_VAL HUGE_VALF HUGE_VALL HUGE_VAL_F32 HUGE_VAL_F32X HUGE_VAL_F64
    HUGE_VAL_F64X INFINITY INTMAX_C INTMAX_MAX INTMAX_MIN INTMAX_WIDTH INTPTR_MAX INTPTR_MIN
    INTPTR_WIDTH IOV_MAX LINE_MAX LITTLE_ENDIAN LOGIN_NAME_MAX L_ctermid L_cuserid L_tmpnam
    MATH_ERREXCEPT MATH_ERRNO MAXFLOAT MAX_CANON MAX_INPUT MB_CUR_MAX MB_LEN_MAX MOD_CLKA
    MOD_CLKB MOD_ESTERROR MOD_FREQUENCY MOD_MAXERROR MOD_MICRO MOD_NANO MOD_OFFSET MOD_STATUS
    MOD_TAI MOD_TIMECONST MQ_PRIO_MAX NAME_MAX NAN NFDBITS NGROUPS_MAX NL_ARGMAX NL_LANGMAX
    NL_MSGMAX NL_NMAX NL_SETMAX NL_TEXTMAX NULL NZERO PATH_MAX PDP_ENDIAN PIPE_BUF
    PTHREAD_DESTRUCTOR_ITERATIONS PTHREAD_KEYS_MAX PTHREAD_STACK_MIN P_tmpdir RAND_MAX
    RENAME_EXCHANGE RENAME_NOREPLACE RENAME_WHITEOUT RE_DUP_MAX RTSIG_MAX SEEK_CUR SEEK_DATA
    SEEK_END SEEK_HOLE SEEK_SET SEM_VALUE_MAX SIG_ATOMIC_MAX SIG_ATOMIC_MIN SIG_ATOMIC_WIDTH
    SNAN SNANF SNANF32 SNANF32X SNANF64 SNANF64X SNANL SSIZE_MAX STA_CLK STA_CLOCKERR STA_DEL
    STA_FLL STA_FREQHOLD STA_INS STA_MODE STA_NANO STA_PLL STA_PPSERROR STA_PPSFREQ
    STA_PPSJITTER STA_PPSSIGNAL STA_PPSTIME STA_PPSWANDER STA_RONLY STA_UNSYNC TIMER_ABSTIME
    TIME_UTC TMP_MAX TTY_NAME_MAX UINTMAX_C UINTMAX_MAX UINTMAX_WIDTH UINTPTR_MAX UINTPTR_WIDTH
    WCHAR_MAX WCHAR_MIN WCHAR_WIDTH WCONTINUED WEXITED WEXITSTATUS WIFCONTINUED WIFEXITED
    WIFSIGNALED WIFSTOPPED WINT_MAX WINT_MIN WINT_WIDTH WNOHANG WNOWAIT WORD_BIT WSTOPPED
    WSTOPSIG WTERMSIG WUNTRACED XATTR_LIST_MAX XATTR_NAME_MAX XATTR_SIZE_MAX alloca assert
    assert_perror be16toh be32toh be64toh htobe16 htobe32 htobe64 htole16 htole32 htole64
    isalnum_l isalpha_l isascii isascii_l isblank_l iscntrl_l isdigit_l isgraph_l islower_l
    isprint_l ispunct_l isspace_l issubnormal isupper_l isxdigit_l le16toh le32toh le64toh linux
    math_errhandling offsetof stderr stdin stdout strdupa strndupa toascii toascii_l unix
    """)
"""Macros of CUDA's and of C's headers: no identifier may have such a name, in any scope."""

GLOBALS = _words("""
    FILE MAJOR_VERSION MINOR_VERSION PATCH_LEVEL a64l abort abs accept access acos acosf acosh
    acoshf acoshl acosl alarm aligned_alloc arc4random arc4random_buf arc4random_uniform asctime
    asctime_r asin asinf asinh asinhf asinhl asinl asprintf atan atan2 atan2f atan2l atanf atanh
    atanhf atanhl atanl atexit atof atoi atol atoll bcmp bcopy bind blockDim blockIdx bsearch
    bzero calloc canonicalize canonicalize_file_name canonicalizef canonicalizel cbrt cbrtf
    cbrtl ceil ceilf ceill chdir chmod chown clearenv clearerr clearerr_unlocked clock clock64
    clock_adjtime clock_getcpuclockid clock_getres clock_gettime clock_nanosleep clock_settime
    close connect copysign copysignf copysignl cos cosf cosh coshf coshl cosl cospi cospif
    ctermid ctime ctime_r cuserid cyl_bessel_i0 cyl_bessel_i0f cyl_bessel_i1 cyl_bessel_i1f
    daddl daylight ddivl dfmal difftime dim3 div dmull dprintf drand48 drand48_r drem dremf
    dreml dsqrtl dsubl dup dysize ecvt ecvt_r environ erand48 erand48_r erf erfc erfcf erfcinv
    erfcinvf erfcl erfcx erfcxf erff erfinv erfinvf erfl exit exp exp10 exp10f exp10l exp2 exp2f
    exp2l expf expl explicit_bzero expm1 expm1f expm1l fabs fabsf fabsl fadd faddl fclose
    fcloseall fcvt fcvt_r fd_mask fd_set fdim fdimf fdiml fdiv fdivide fdividef fdivl fdopen
    feof feof_unlocked ferror ferror_unlocked fflush fflush_unlocked ffma ffmal ffs ffsl ffsll
    fgetc fgetc_unlocked fgetpos fgetpos64 fgets fgets_unlocked fileno fileno_unlocked finite
    finitef finitel flockfile floor floorf floorl fma fmaf fmal fmax fmaxf fmaximum fmaximum_mag
    fmaximum_mag_num fmaximum_mag_numf fmaximum_mag_numl fmaximum_magf fmaximum_magl
    fmaximum_num fmaximum_numf fmaximum_numl fmaximumf fmaximuml fmaxl fmaxmag fmaxmagf fmaxmagl
    fmemopen fmin fminf fminimum fminimum_mag fminimum_mag_num fminimum_mag_numf
    fminimum_mag_numl fminimum_magf fminimum_magl fminimum_num fminimum_numf fminimum_numl
    fminimumf fminimuml fminl fminmag fminmagf fminmagl fmod fmodf fmodl fmul fmull fopen
    fopen64 fopencookie fork fprintf fputc fputc_unlocked fputs fputs_unlocked fread
    fread_unlocked free freopen freopen64 frexp frexpf frexpl fromfp fromfpf fromfpl fromfpx
    fromfpxf fromfpxl fscanf fseek fseeko fseeko64 fsetpos fsetpos64 fsqrt fsqrtl fsub fsubl
    ftell ftello ftello64 ftrylockfile funlockfile fwrite fwrite_unlocked gamma gammaf gammal
    gcvt getc getc_unlocked getchar getchar_unlocked getcwd getdate getdate_err getdate_r
    getdelim getenv getline getloadavg getpayload getpayloadf getpayloadl getpid getpt getsubopt
    getw gmtime gmtime_r grantpt gridDim hypot hypotf hypotl ilogb ilogbf ilogbl index initstate
    initstate_r isalnum isalpha isblank iscntrl isctype isdigit isgraph isinff isinfl islower
    isnanf isnanl isprint ispunct isspace isupper isxdigit j0 j0f j0l j1 j1f j1l jn jnf jnl
    jrand48 jrand48_r kill l64a labs lcong48 lcong48_r ldexp ldexpf ldexpl ldiv lgamma lgamma_r
    lgammaf lgammaf_r lgammal lgammal_r libraryPropertyType link listen llabs lldiv llmax llmin
    llogb llogbf llogbl llrint llrintf llrintl llround llroundf llroundl localtime localtime_r
    log log10 log10f log10l log1p log1pf log1pl log2 log2f log2l logb logbf logbl logf logl
    lrand48 lrand48_r lrint lrintf lrintl lround lroundf lroundl main malloc max mblen mbstowcs
    mbtowc memccpy memcmp memcpy memfrob memmem memmove mempcpy memset min mkdir mkdtemp
    mkostemp mkostemp64 mkostemps mkostemps64 mkstemp mkstemp64 mkstemps mkstemps64 mktemp
    mktime mmap modf modff modfl mrand48 mrand48_r munmap nan nanf nanl nanosleep nearbyint
    nearbyintf nearbyintl nextafter nextafterf nextafterl nextdown nextdownf nextdownl
    nexttoward nexttowardf nexttowardl nextup nextupf nextupl norm norm3d norm3df norm4d norm4df
    normcdf normcdff normcdfinv normcdfinvf normf nrand48 nrand48_r obstack_printf
    obstack_vprintf on_exit open open_memstream pause pclose perror pipe popen posix_memalign
    posix_openpt pow powf powl printf pselect ptsname ptsname_r putc putc_unlocked putchar
    putchar_unlocked putenv puts putw qecvt qecvt_r qfcvt qfcvt_r qgcvt qsort qsort_r quick_exit
    raise rand rand_r random random_r rcbrt rcbrtf read realloc reallocarray realpath recv
    remainder remainderf remainderl remove remquo remquof remquol rename renameat renameat2
    rewind rhypot rhypotf rindex rint rintf rintl rmdir rnorm rnorm3d rnorm3df rnorm4d rnorm4df
    rnormf round roundeven roundevenf roundevenl roundf roundl rpmatch rsqrt rsqrtf scalb scalbf
    scalbl scalbln scalblnf scalblnl scalbn scalbnf scalbnl scanf secure_getenv seed48 seed48_r
    select send setbuf setbuffer setenv setlinebuf setpayload setpayloadf setpayloadl
    setpayloadsig setpayloadsigf setpayloadsigl setstate setstate_r setvbuf sigabbrev_np
    sigaction sigdescr_np signal signgam significand significandf significandl sin sincos
    sincosf sincosl sincospi sincospif sinf sinh sinhf sinhl sinl sinpi sinpif sleep snprintf
    socket sprintf sqrt sqrtf sqrtl srand srand48 srand48_r srandom srandom_r sscanf stat stpcpy
    stpncpy strcasecmp strcasecmp_l strcat strcmp strcoll strcoll_l strcpy strcspn strdup
    strerror strerror_l strerror_r strerrordesc_np strerrorname_np strfromd strfromf strfroml
    strfry strftime strftime_l strlen strncasecmp strncasecmp_l strncat strncmp strncpy strndup
    strnlen strptime strptime_l strsep strsignal strspn strtod strtod_l strtof strtof_l strtok
    strtok_r strtol strtol_l strtold strtold_l strtoll strtoll_l strtoq strtoul strtoul_l
    strtoull strtoull_l strtouq strverscmp strxfrm strxfrm_l system tan tanf tanh tanhf tanhl
    tanl tempnam tgamma tgammaf tgammal threadIdx time timegm timelocal timer_create
    timer_delete timer_getoverrun timer_gettime timer_settime timespec_get timespec_getres
    timezone tmpfile tmpfile64 tmpnam tmpnam_r tolower tolower_l totalorder totalorderf
    totalorderl totalordermag totalordermagf totalordermagl toupper toupper_l trunc truncf
    truncl tzname tzset u_char u_int u_long u_short ufromfp ufromfpf ufromfpl ufromfpx ufromfpxf
    ufromfpxl uint ullmax ullmin ulong umax umin ungetc unlink unlockpt unsetenv ushort usleep
    va_list valloc vasprintf vdprintf vfprintf vfscanf vprintf vscanf vsnprintf vsprintf vsscanf
    wait warpSize wcstombs wctomb write y0 y0f y0l y1 y1f y1l yn ynf ynl
    """)
"""Functions, objects and types at file scope: a parameter may hide one, a kernel may not."""

TYPES = _words("""
    FILE blkcnt64_t blkcnt_t blksize_t caddr_t clock_t clockid_t comparison_fn_t
    cookie_close_function_t cookie_io_functions_t cookie_read_function_t cookie_seek_function_t
    cookie_write_function_t daddr_t dev_t dim_t div_t double_t float_t fpos64_t fpos_t
    fsblkcnt64_t fsblkcnt_t fsfilcnt64_t fsfilcnt_t fsid_t gid_t id_t ino64_t ino_t int16_t
    int32_t int64_t int8_t int_fast16_t int_fast32_t int_fast64_t int_fast8_t int_least16_t
    int_least32_t int_least64_t int_least8_t intmax_t intptr_t key_t ldiv_t lldiv_t locale_t
    loff_t max_align_t mbstate_t mode_t nlink_t nullptr_t off64_t off_t pid_t pthread_attr_t
    pthread_barrier_t pthread_barrierattr_t pthread_cond_t pthread_condattr_t pthread_key_t
    pthread_mutex_t pthread_mutexattr_t pthread_once_t pthread_rwlock_t pthread_rwlockattr_t
    pthread_spinlock_t pthread_t ptrdiff_t quad_t register_t sigset_t size_t ssize_t suseconds_t
    time_t timer_t u_int16_t u_int32_t u_int64_t u_int8_t u_quad_t uid_t uint16_t uint32_t
    uint64_t uint8_t uint_fast16_t uint_fast32_t uint_fast64_t uint_fast8_t uint_least16_t
    uint_least32_t uint_least64_t uint_least8_t uintmax_t uintptr_t useconds_t va_list wctype_t
    wint_t
    """)
"""Types of C: a parameter that hides one breaks what the compiler adds to a kernel."""

NEWER = (
    frozenset(name + suffix for name in _words("""
        acospi asinpi atan2pi atanpi compoundn exp10m1 exp2m1 log10p1 log2p1 logp1 pown powr rootn
        rsqrt sinpi cospi tanpi
        """) for suffix in ("", "f", "l"))
    | _words("""
    call_once free_aligned_sized free_sized memalignment memset_explicit once_flag strlcat strlcpy
    uabs uimaxabs ulabs ullabs
    """)
)
"""What C23 adds at file scope: the headers of some machines have it."""

_FAMILY = re.compile(r"(\w+?)f(32|64|128)x?(_[lr])?")
_HOST_MODEL = re.compile(r"(Gg|GG_)\w*")


def is_global(name: str) -> bool:
    """Whether a compiler knows ``name`` at file scope, in addition to reserved words."""
    family = _FAMILY.fullmatch(name)
    if family and (family[1] in GLOBALS | NEWER or family[1] in ("strto", "strfrom")):
        return True
    mixed = re.fullmatch(r"f(32|64|128)x?(add|div|fma|mul|sqrt|sub)f(32|64|128)x?", name)
    return name in GLOBALS or name in NEWER or bool(mixed or _HOST_MODEL.fullmatch(name))
