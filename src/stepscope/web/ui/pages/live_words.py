"""The words of the page of a running job, in English and Chinese."""

from __future__ import annotations

from stepscope.texts import Text
from stepscope.web.ui.context import Context

WORDS = {
    "about": Text(
        "A job while it runs: asked of its manager once a second.",
        "运行中的作业：每秒向其管理器查询一次。",
    ),
    "how": Text(
        "No running job is shown: this server was started without `--live`. Start tracing with "
        "`stepscope live manager` and `STEPSCOPE_LIVE=1` in the environment of the job, then start the server with "
        "`--live here` (the manager of this machine) or `--live HOST:PORT`.",
        "未显示运行中的作业：此服务启动时未指定 `--live`。请运行 `stepscope live manager`，在作业环境中设置 "
        "`STEPSCOPE_LIVE=1`，然后以 `--live here`（本机的管理器）或 `--live 主机:端口` 启动此服务。",
    ),
    "records": Text("Light records below the served directories", "所服务目录下的轻量记录"),
    "no_records": Text("There are none.", "没有。"),
    "waiting": Text("Waiting for the manager", "正在等待管理器"),
    "old": Text("Not up to date: {problem}", "不是最新状态：{problem}"),
    "no_manager": Text(
        "{target}: no manager answers ({reason}). Start it again with `stepscope live manager`; this page then goes on "
        "by itself. If it listens elsewhere, start this server with `--live HOST:PORT`",
        "{target}：管理器没有应答（{reason}）。请用 `stepscope live manager` 重新启动，此页面随后自动恢复；若其监听在"
        "别处，请以 `--live 主机:端口` 启动此服务",
    ),
    "nobody": Text(
        "No rank has registered with the manager yet. Start the job with `STEPSCOPE_LIVE=1` in its environment, or by "
        "`stepscope record --live -- COMMAND`; its ranks appear here by themselves.",
        "尚无 rank 在管理器注册。请在作业环境中设置 `STEPSCOPE_LIVE=1`，或用 `stepscope record --live -- 命令` "
        "启动作业；其 rank 会自动出现在这里。",
    ),
    "summary": Text(
        "Job {job}: {alive} of {ranks} ranks, on {hosts}",
        "作业 {job}：{ranks} 个 rank 中有 {alive} 个在运行（{hosts}）",
    ),
    "pace": Text("; step {step}, {time} a step", "；第 {step} 步，每步 {time}"),
    "missing": Text("{count} of {world} ranks have not registered.", "{world} 个 rank 中有 {count} 个尚未注册。"),
    "some_late": Text("Not heard for some seconds: {ranks}.", "数秒未收到消息：{ranks}。"),
    "some_lost": Text("No longer taking part: {ranks}.", "已不再参与：{ranks}。"),
    "alive": Text("ok", "正常"),
    "late": Text("late", "迟"),
    "lost": Text("lost", "失联"),
    "measure": Text("Shows", "显示"),
    "step": Text("Step time", "步时间"),
    "data": Text("Wait for data", "等待数据"),
    "forward": Text("Forward pass", "前向"),
    "ranks": Text("Ranks, e.g. 0,3-5", "Rank，例如 0,3-5"),
    "waits": Text(
        "Ranks that wait for one another take equally long steps. What a slow one does longer, its forward pass or "
        "wait for data shows.",
        "相互等待的 rank 步时间相同；慢 rank 多花的时间，可从其前向或等待数据看出。",
    ),
    "none_chosen": Text(
        "No rank with steps is among “{ranks}”; this job has {there}.", "“{ranks}”中没有有步的 rank；此作业有 {there}。"
    ),
    "lines": Text("{measure} by rank", "各 rank 的{measure}"),
    "map": Text("{measure}, rank by step", "{measure}：按 rank 与步"),
    "table": Text("Ranks, the worst first", "各 rank，最差者在前"),
    "rank": Text("rank", "rank"),
    "host": Text("host", "主机"),
    "state": Text("state", "状态"),
    "last": Text("step", "步"),
    "step_time": Text("step time", "步时间"),
    "data_wait": Text("wait for data", "等待数据"),
    "forward_pass": Text("forward pass", "前向"),
    "communication": Text("communication", "通信"),
    "own": Text("own time", "自身耗时"),
    "inside": Text("is in", "所处位置"),
    "more": Text("and {count} more", "另有 {count} 个"),
    "verdicts": Text("Who is slow", "谁慢"),
    "over": Text("Over", "已结束"),
    "switches": Text("What is recorded", "记录内容"),
    "on": Text("on", "开"),
    "off": Text("off", "关"),
    "turn_on": Text("Switch on", "打开"),
    "turn_off": Text("Switch off", "关闭"),
    "revision": Text(
        "Revision {revision}: applied by {applied} of {there} ranks{by}.",
        "版本 {revision}：{there} 个 rank 中有 {applied} 个已应用{by}。",
    ),
    "unswitched": Text(
        "Nobody has switched yet: ranks record what they were started with.", "尚无人切换：各 rank 按启动时的设置记录。"
    ),
    "nobody_follows": Text(
        "Revision {revision}{by}: no rank takes part; those that join follow it.",
        "版本 {revision}{by}：没有 rank 参与；之后加入的 rank 将采用。",
    ),
    "asked_by": Text(", requested by {by}", "，由 {by} 请求"),
    "pending": Text("Not applied yet by {ranks}.", "尚未应用：{ranks}。"),
    "failed": Text("Rank {rank} cannot apply them: {error}", "rank {rank} 无法应用：{error}"),
    "read_only": Text(
        "To switch and to profile from here, start the server with a token: --token-file FILE.",
        "若要在此切换或采集，请以令牌启动服务：--token-file 文件。",
    ),
    "ask_switch": Text("Switch {kind} {state} on all ranks of the job?", "在作业的所有 rank 上将{kind}切换为{state}？"),
    "profile": Text("Profile ranks", "采集 rank 的性能数据"),
    "profile_ranks": Text("Ranks to profile", "要采集的 rank"),
    "profile_steps": Text("Steps", "步数"),
    "do_profile": Text("Profile {ranks}, {steps} steps", "采集 {ranks}，{steps} 步"),
    "ask_profile": Text(
        "Profile {steps} steps of {ranks}? Training is slower meanwhile.",
        "采集 {ranks} 的 {steps} 步？期间训练会变慢。",
    ),
    "yes": Text("Do it", "执行"),
    "no": Text("Leave it", "取消"),
    "profiled": Text("Rank {rank}: its profile is in `{place}`.", "rank {rank}：性能数据位于 `{place}`。"),
    "unprofiled": Text("Rank {rank} could not be profiled: {error}.", "无法采集 rank {rank}：{error}。"),
    "unfinished": Text(
        "Not finished yet: {ranks}. It appears below when it is done.", "尚未完成：{ranks}。完成后会出现在下方。"
    ),
    "working": Text("Working…", "正在执行……"),
    "switched": Text("Switched: applied by {count} ranks.", "已切换：{count} 个 rank 已应用。"),
    "running": Text("running", "进行中"),
    "ended": Text("done", "完成"),
    "failed_capture": Text("failed", "失败"),
    "captures": Text("Profiles", "性能数据"),
    "opens": Text("Open as a run", "作为运行打开"),
    "soon": Text("becomes a run when it has been read", "读取后即成为一个运行"),
    "elsewhere": Text(
        "not below the served directories; on the host of the rank: `stepscope analyze {path}`",
        "不在所服务的目录下；请在该 rank 的主机上运行：`stepscope analyze {path}`",
    ),
    "all": Text("all", "全部"),
}


def said(context: Context, key: str) -> str:
    """A word of the page in the reader's language."""
    return WORDS[key].of(context.language)


def every_word(context: Context) -> dict[str, str]:
    """All words of the page in the reader's language."""
    return {key: text.of(context.language) for key, text in WORDS.items()}
