import { readFile } from 'node:fs/promises'

/** Bytes in the kernel's queues for one end of a TCP connection over IPv4 on this machine. */
export interface SocketQueues {
  readonly localPort: number
  readonly remotePort: number
  /** Bytes sent by the program, and not acknowledged by the other end. */
  readonly toSend: number
  /** Bytes received, and not read by the program. */
  readonly received: number
}

const LINE = /^ *\d+: \w+:(\w+) \w+:(\w+) \w+ (\w+):(\w+) /

/** Returns the current queues of all connections (proc_net_tcp(5)). */
export async function socketQueues(): Promise<readonly SocketQueues[]> {
  const lines = (await readFile('/proc/net/tcp', 'latin1')).split('\n')
  return lines.flatMap((line) => {
    const [localPort, remotePort, toSend, received] = (LINE.exec(line) ?? []).slice(1).map((hex) => parseInt(hex, 16))
    if (localPort === undefined || remotePort === undefined || toSend === undefined || received === undefined) return []
    return [{ localPort, remotePort, toSend, received }]
  })
}
