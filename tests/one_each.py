"""What the default suite takes of tests that repeat one mechanism over many parameters.

By default one parameter for each mechanism, or none where other tests go the same way; the whole
matrix is part of the proof (``pytest --proof``).  Patterns are those of ``fnmatch``.
"""

from __future__ import annotations

BY_DEFAULT: dict[str, tuple[str, ...]] = {
    # Every schedule's text is run by tests/golden, or by these at least.
    "passes/test_meaning.py::test_the_text_gives_the_reference_in_every_bit": (
        "other letters",
        "threads along n of a column-major C",
        "no step along k",
        "only B staged, ahead",
        "four stages, read ahead",
        "two stages of A alone",
    ),
    "passes/test_meaning.py::test_each_pass_keeps_the_meaning": (
        "[ac-z]*ed",
        "naive",
        "split_k",
        "async_copy",
        "tensor_core",
        "odd_extents",
        "matvec",
        "three stages",
        "no step along k, micro-tiles",
        "fragments of A alone",
    ),
    "golden/test_golden.py::test_every_storage_order_is_right": (
        "naive-km_nk_nm",
        "tiled-mk_nk_nm",
        "register_blocked-km_kn_mn",
        "vectorized-km_nk_nm",
        "vectorized-mk_nk_mn",
    ),
    "passes/test_banks.py::test_a_pattern_without_conflicts_has_none_in_the_lowered_code": (
        "an element a thread, ? transposed",
        "A along k",
        "pairs",
        "uneven pieces",
    ),
    # Layers of proof: each layer, and each kind of failure, once.
    "verify/test_tensor_cores.py::test_every_storage_order_is_right": ("wide-km_nk_nm",),
    "verify/test_tensor_cores.py::test_right_kernels_hold": ("plain",),
    "verify/test_tensor_cores.py::test_tiles_that_are_turned_on_the_way_in_are_right": (),
    "verify/test_tensor_cores.py::test_a_run_of_the_text_shows_it": (
        "lines_without_their_pad",
        "no_warp_barriers",
    ),
    "verify/test_tensor_cores.py::test_the_programs_meaning_shows_it": ("columns_for_rows",),
    "verify/test_async_copies.py::test_the_programs_meaning_shows_it": ("*-three stages",),
    "verify/test_async_copies.py::test_a_run_of_the_text_shows_it": ("*-two stages",),
    "verify/test_layers.py::test_all_layers_that_can_run_hold": ("naive",),
    "verify/test_layers.py::test_storage_orders_and_letters": ("S*",),
    "verify/test_bounds.py::test_the_arithmetic_of_tensor_cores_stays_within": (
        "64-*",
        "1024-*",
    ),
    "verify/test_bounds.py::test_a_fault_goes_beyond": ("64-*", "1024-*"),
    "batches/test_kernels.py::test_all_layers_hold": (
        "batched",
        "A shared",
        "four in every order",
        "an epilogue of all",
    ),
    "dtypes/test_kernels.py::test_each_directive_takes_each_type": (
        "naive-bf16 to f32",
        "tiled-f16 times f32",
        "register_blocked-f32 to bf16",
        "straight to fragments-f16",
        "asynchronous-f64",
        "epilogue-bf16",
    ),
    "dtypes/test_kernels.py::test_the_golden_is_what_is_emitted_and_right": ("bf16", "f16", "f64"),
    "versions/test_schedules.py::test_is_right_on_the_cpu_at_ragged_shapes": ("sizes/small",),
    "versions/test_schedules.py::test_means_the_same_after_every_pass": ("sizes/small",),
    "versions/test_schedules.py::test_the_corrected_pad_removes_the_conflicts"
    "_that_version_five_has": (),
    "best/test_schedules.py::test_is_right_on_the_cpu_with_every_access_watched": (),
    "best/test_schedules.py::test_means_what_its_problem_says": (),
    # NVRTC: each kind of kernel once; what each architecture makes of it, in the proof.
    "emit/test_compiles.py::test_nvrtc_compiles_it_without_a_warning": (
        "naive-sm_75",
        "vectorized-sm_90",
        "tensor_core-sm_80",
        "fused-sm_86",
    ),
    "emit/test_compiles.py::test_nvcc_compiles_all_without_a_warning": (),
    "emit/test_compiles.py::test_asynchronous_copies_pass_through_no_register": ("sm_80",),
    "nvrtc/test_compile.py::test_a_good_kernel_compiles_without_a_word_or_a_spill": ("*sm_80*",),
    "best/test_schedules.py::test_compiles_without_a_warning_and_without_spills": (),
    "dtypes/test_kernels.py::test_compiles_without_a_warning": ("bf16",),
    "batches/test_kernels.py::test_compiles_without_a_warning": ("four in every order",),
    "nvrtc/test_intrinsics.py::test_tensor_cores_get_what_their_schedule_promises": ("sm_80",),
    # Counting.
    "analyze/test_whole_launch.py::test_classes_and_periods_count_like_all_blocks_and_trips": (
        "text4",
        "bind x=m y=n",
        "tile m=24 n=16*",
        "tile m=8 n=2 k=64*",
        "text19",
        "assume N == K",
    ),
    "analyze/test_commands.py::test_every_example_is_explained": (
        "naive",
        "vectorized",
        "split_k",
        "tensor_core",
    ),
    "analyze/test_independent_count.py::test_counts_are_those_of_the_emitted_text": (
        "naive",
        "vectorized",
        "rounds of two tiles",
        "f16, eight at a time",
        "async_copy",
        "batched, B shared",
        "C?n, m? = A?k, m? ? B?n, k?",
    ),
    "analyze/test_known_facts.py::test_the_transposing_store_wants_a_pad_of_four": ("4-1",),
    # The run on the CPU: each kind of finding once.
    "sim/test_planted.py::test_finds_at_its_line": (
        "the barrier behind the first tile dropped",
        "the guard of a load dropped",
        "the guard of a store dropped",
        "the zero fill dropped",
        "rows of a wide tile padded by one",
        "some threads pass the barrier by",
        "C read where beta is 0",
        "two owners of one element",
        "an input written",
        "one group too few waited for",
    ),
    "sim/test_blocks.py::test_finds": (
        "no barrier before a block counts",
        "the counter is not reset",
        "a part is skipped",
        "two parts in one place",
        "plain additions",
    ),
    "sim/test_blocks.py::test_every_order_of_blocks_is_right": ("shape0-*", "shape3-ordered"),
    "sim/test_handwritten.py::test_finds_the_mutant": ("*naive*", "*tiled*"),
    "dtypes/test_planted.py::test_finds_in_the_text": (),
    "emit/test_epilogues.py::test_computes_its_expression": ("tiled-*",),
    # Schedules drawn at random, and bugs planted in the compiler for them.
    "fuzz/test_random_schedules.py::test_none_fails_and_few_are_refused": ("0",),
    "fuzz/test_random_schedules.py::test_a_replay_is_the_trial_of_the_campaign": (),
    "fuzz/test_planted_bugs.py::test_a_planted_bug_is_found": (
        "barrier_dropped",
        "stage_off_by_one",
        "rounds_end_a_tile_early",
        "guard_dropped",
        "one_group_too_few",
        "result_rounded_to_the_other_half",
        "too_few_stages",
    ),
    "fuzz/test_planted_bugs.py::test_a_failure_is_made_small": ("guard_dropped", "too_few_stages"),
    "fuzz/test_planted_bugs.py::test_a_pass_is_blamed": (),
    "fuzz/test_regressions.py::test_a_schedule_that_failed_once_holds": (
        "a_negated_product_in_a_sum",
        "two_extents_are_one_parameter",
    ),
    # Tuning: one search, one process that ends, one table.
    "tune/test_search.py::test_short_of_time_the_sampler_comes_near_the_best": (),
    "tune/test_search.py::test_one_seed_gives_one_order_and_one_text": ("20.0",),
    "tune/test_processes.py::test_processes_count_the_same_points": (),
    "tune/test_processes.py::test_a_kernel_that_never_ends_is_given_up": (),
    "tune/test_processes.py::test_points_are_compiled_to_files": (),
    "tune/test_example.py::test_points_all_over_the_space_are_legal_and_right": (),
    # The language.
    "schedule/test_canonical.py::test_all_5040_orders_of_the_seven_words_are_one_schedule": (),
    "hostile/test_table.py::test_hints_can_be_followed_to_the_end": (),
    "docs/test_contents.py::test_each_command_runs_and_prints_what_its_row_holds": ("000-*",),
    # The site takes most of a minute to build.
    "docs/test_contents.py::test_a_place_on_a_page_is_there": (),
    "docs/test_site.py::test_no_link_is_dead": (),
    "docs/test_site.py::test_nothing_is_fetched_from_another_host": (),
    "docs/test_site.py::test_a_page_shows_schedule_program_text_and_limits": (),
    "docs/test_site.py::test_an_example_without_a_page_of_its_own_is_on_the_one_that_is_named": (),
    "docs/test_site.py::test_the_uses_show_their_schedules_and_code": (),
    "docs/test_site.py::test_no_call_is_left_in_a_page": (),
    "docs/test_browser.py::test_every_page_of_the_site_opens_without_an_error"
    "_and_every_link_leads_somewhere": (),
    "docs/test_browser.py::test_a_planted_fault_is_found": ("console",),
}
"""Each test that is cut down: what of it is taken by default."""
