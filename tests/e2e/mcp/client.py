"""Calls tools of `nodewhy mcp` by the protocol's own SDK, which also holds each answer against the tool's schema.

Reads a list of [tool, arguments] from standard input, and prints the server's instructions, its tools and the answers.
"""

import asyncio
import json
import sys

from mcp import Client, StdioServerParameters


async def main(program: str) -> None:
    calls = json.load(sys.stdin)
    async with Client(StdioServerParameters(command=program, args=["mcp"])) as client:
        tools = (await client.list_tools()).tools
        answers = [await client.call_tool(tool, arguments) for tool, arguments in calls]
        print(
            json.dumps(
                {
                    "instructions": client.instructions,
                    "tools": [tool.model_dump(mode="json", by_alias=True) for tool in tools],
                    "answers": [answer.model_dump(mode="json", by_alias=True) for answer in answers],
                }
            )
        )


asyncio.run(main(sys.argv[1]))
