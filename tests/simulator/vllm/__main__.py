"""`python -m tests.simulator.vllm MODEL ...` takes the words after `vllm serve`."""

import asyncio
import os
import signal
import sys

from tests.simulator.vllm import startup
from tests.simulator.vllm.http import listen
from tests.simulator.vllm.instance import Instance
from tests.simulator.vllm.log import say
from tests.simulator.vllm.options import Options, parse


async def serve(options: Options) -> None:
    """Answer until SIGTERM. Raises OSError: an address cannot be bound."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    instance = Instance(options)
    await instance.embeddings.start()
    await instance.blocks.start()
    server = await listen(instance.handle, options.host, options.port)
    say(f"INFO vLLM {options.release} (simulated) serves {options.served_name}")
    await stop.wait()
    if options.shutdown_timeout:
        await instance.drain()
    server.close()


def main() -> int:
    options = parse(sys.argv[1:], os.environ)
    try:
        startup.check(options)
        asyncio.run(serve(options))
    except (startup.StartError, OSError) as error:
        say(f"ERROR {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
