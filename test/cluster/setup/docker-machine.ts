import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import type { Cluster } from './cluster.ts'

/**
 * Machine whose Docker serves motors. dockerd of the suite has a network of its own, so that ports published on loopback are those of its
 * loopback: programs that use them run in that network, and tests reach its loopback over a relay. With DOCKER_HOST it is this machine.
 */
export interface DockerMachine extends AsyncDisposable {
  /** Command that another command is appended to. */
  readonly inside: readonly string[]
  /** Opens a way to a port of the machine's loopback. @returns a port of this machine's loopback */
  open(port: number): Promise<number>
  /** Reserves a port of this machine's loopback that leads to the same port of the machine's loopback. */
  reserve(): Promise<number>
}

/** Listens on $1, and passes each connection to the port of loopback that its first line names. Ends with its standard input. */
const RELAY = `
const { connect, createServer } = require('node:net')
const server = createServer((outer) => {
  outer.on('error', () => undefined)
  outer.once('data', (first) => {
    const inner = connect(first.readUInt16BE(), '127.0.0.1')
    inner.on('error', () => outer.destroy())
    outer.on('close', () => inner.destroy())
    inner.on('close', () => outer.destroy())
    inner.write(first.subarray(2))
    outer.pipe(inner).pipe(outer)
  })
})
server.listen(0, process.argv[1], () => console.log(server.address().port))
process.stdin.on('end', () => process.exit()).resume()
`

export async function openDockerMachine({ dockerHost, dockerNetwork }: Cluster): Promise<DockerMachine> {
  if (dockerNetwork === undefined) {
    const open = (port: number) => Promise.resolve(port)
    return { inside: [], open, reserve: () => Promise.resolve(0), [Symbol.asyncDispose]: () => Promise.resolve() }
  }
  const network = `--net=${dockerNetwork}`
  const address = new URL(dockerHost).hostname
  const relay = spawn('nsenter', [network, process.execPath, '-e', RELAY, address], { stdio: ['pipe', 'pipe', 'inherit'] })
  const [line] = (await once(createInterface(relay.stdout), 'line')) as [string]
  const relayPort = Number(line)
  const remains = new AsyncDisposableStack()
  remains.defer(async () => {
    relay.stdin.end()
    await once(relay, 'exit')
  })

  /** @param port port of the machine's loopback; absent: the same as the port that is listened on */
  async function open(port?: number): Promise<number> {
    const sockets = new Set<Socket>()
    const server = createServer((outer) => {
      const inner = connect(relayPort, address)
      const header = Buffer.alloc(2)
      header.writeUInt16BE(port ?? own)
      inner.write(header)
      outer.pipe(inner).pipe(outer)
      for (const [one, other] of [
        [outer, inner],
        [inner, outer],
      ] as const) {
        sockets.add(one)
        one.on('error', () => undefined)
        one.on('close', () => {
          sockets.delete(one)
          other.destroy()
        })
      }
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    remains.defer(() => {
      for (const socket of sockets) socket.destroy()
      server.close()
    })
    const bound = server.address()
    if (bound === null || typeof bound === 'string') throw new Error('a listening server has an address')
    const own = bound.port
    return own
  }

  return { inside: ['nsenter', network], open, reserve: () => open(), [Symbol.asyncDispose]: () => remains.disposeAsync() }
}
