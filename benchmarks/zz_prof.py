"""GPU time by kernel of GPT-2's forward passes."""
import sys; sys.path.insert(0,"examples/torch")
import torch, gpt2
from torch.profiler import profile, ProfilerActivity
torch.backends.cuda.matmul.allow_tf32=False
model, gen, tokens = gpt2.models()
with torch.no_grad():
    for name, m in (("torch",model),("gemmgen",gen)):
        for _ in range(3): m(tokens)
        torch.cuda.synchronize()
        with profile(activities=[ProfilerActivity.CUDA]) as p:
            for _ in range(5): m(tokens)
            torch.cuda.synchronize()
        rows=sorted(p.key_averages(), key=lambda e:-e.device_time_total)
        print(name, "GPU ms a pass %.3f"%(sum(e.device_time_total for e in rows)/5e3))
        for e in rows[:14]: print("  %8.1f us x%3d %s"%(e.device_time_total/5,e.count//5,e.key[:70]))
def seg(name):
    op=getattr(torch.ops.gpt2,name).default
    return op
