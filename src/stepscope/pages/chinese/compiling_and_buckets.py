"""Chinese meanings of columns about compiled functions, buckets of gradients, processors and clocks, and of flame graphs that
differ, by the English ones."""

from __future__ import annotations

MEANINGS = {
    # compiled functions
    "Calls of compiled functions in steps: searches for a version that fits.": (
        "各步中对被编译函数的调用：每次都查找适用的版本。"
    ),
    "Of these, a version was found and ran.": "其中找到适用版本并运行的次数。",
    "Of these, a compiler started.": "其中启动了编译的次数。",
    "Of these, neither: the function ran as if it were not compiled.": "其中两者皆非的次数：函数按未编译的方式运行。",
    "Steps with such calls.": "有这类调用的步。",
    "True if calls of the last step are among them.": "最后一步的调用也在其中时为真。",
    "Highest version that ran, from 0; null if none ran or they are not numbered.": (
        "运行过的最高版本号，从 0 开始；没有运行或没有编号则为空。"
    ),
    "Number of the compiled function; null if not recorded.": "被编译函数的编号；未记录则为空。",
    "Number of the version that is compiled, from 0; null if not recorded.": "所编译版本的编号，从 0 开始；未记录则为空。",
    "Time of compiling it, without its backward pass if that is compiled later.": (
        "编译它的时间；反向若之后才编译，则不含反向。"
    ),
    "True if it runs afterwards; false if the compiler gave up.": "之后运行则为真；编译器放弃则为假。",
    "What of its inputs differs from the version that ran before; null if unknown.": (
        "其输入与之前运行的版本的不同之处；未知则为空。"
    ),
    "Shape (or type) of the first input that differs, before; null if none does.": (
        "第一个不同的输入之前的形状（或类型）；没有不同则为空。"
    ),
    "The same of this version.": "此版本的相应值。",
    # buckets of gradients
    "Place of the bucket in its backward pass, in the order of launches, from 0.": (
        "该桶在反向传播中的次序（按下发顺序），从 0 开始。"
    ),
    "All-reduces of it in steps.": "各步中它的 all-reduce 次数。",
    "Median size; null if not recorded.": "大小的中位数；未记录则为空。",
    "Median transmission, covered by computing or not; null if unknown.": (
        "传输时间的中位数，无论是否被计算掩盖；未知则为空。"
    ),
    "Transmission that no computing covers, in all steps; unknown calls count nothing.": (
        "所有步中未被计算掩盖的传输；未知的调用不计入。"
    ),
    "Time that no computing covers of calls whose waiting is unknown, in all steps.": (
        "所有步中，等待时间未知的调用未被计算掩盖的时间。"
    ),
    "Median computing of the backward pass that is left when it begins.": "它开始时反向传播剩余计算量的中位数。",
    "Median computing of the backward pass.": "反向传播计算量的中位数。",
    # processors and clocks
    "How long the training thread was ready to run while the processors ran others, within the step's length.": (
        "训练线程就绪但处理器在运行其他线程的时间，不超过步长。"
    ),
    "Length of the step on this rank, without waits for a processor.": "该 rank 上步的长度，不含等待处理器的时间。",
    "Of computing on a CPU: whether the step runs the operators, with the shapes, that most steps do; else null.": (
        "CPU 上的计算：该步的算子及形状是否与多数步相同；其他情况为空。"
    ),
    "Kernels, on a CPU operators, that explain most of it; none if it takes many.": (
        "解释大部分差异的 kernel（CPU 上为算子）；需要很多时为空。"
    ),
    "Why the clock is lowered.": "降频的原因。",
    "Samples in which it is lowered for this reason.": "因此原因降频的采样数。",
    "Share of the samples.": "占采样的比例。",
    "Mean clock in these samples; null if not sampled.": "这些采样中的平均时钟；未采样则为空。",
    "Mean clock in samples without any of these reasons; null if there are none.": "没有这些降频原因的采样中的平均时钟；没有则为空。",
    # flame graphs that differ
    "What is compared: the step less exposed communication.": "比较的内容：步时间减去未掩盖的通信。",
    "Time of the base on the host in the calls that the new side makes here, wherever it makes them itself.": (
        "基准侧在新的一侧于此处进行的调用中所用的主机时间，无论基准侧在何处进行这些调用。"
    ),
    "Device work that the base launches in the calls that the new side makes here, wherever it makes them itself.": (
        "基准侧在新的一侧于此处进行的调用中下发的设备任务，无论基准侧在何处进行这些调用。"
    ),
    "Time of the new side on the host in the calls that the base makes here, wherever it makes them itself.": (
        "新的一侧在基准侧于此处进行的调用中所用的主机时间，无论新的一侧在何处进行这些调用。"
    ),
    "Device work that the new side launches in the calls that the base makes here, wherever it makes them itself.": (
        "新的一侧在基准侧于此处进行的调用中下发的设备任务，无论新的一侧在何处进行这些调用。"
    ),
}
