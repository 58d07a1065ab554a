import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { pipeline } from 'node:stream'

/** Balancer on loopback, which sends a header and then forwards bytes. */
export interface Balancer extends AsyncDisposable {
  readonly port: number
}

/** Starts a balancer. @param from source address of its connections to the edge */
export async function startBalancer(edgePort: number, header: Buffer, from = '127.0.0.1'): Promise<Balancer> {
  const sockets = new Set<Socket>()
  const keep = (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
    return socket
  }
  const server = createServer({ allowHalfOpen: true }, (client) => {
    const edge = keep(connect({ port: edgePort, host: '127.0.0.1', localAddress: from, allowHalfOpen: true }))
    keep(client)
    if (header.length > 0) edge.write(header)
    // An error on one side closes the other.
    pipeline(client, edge, () => undefined)
    pipeline(edge, client, () => undefined)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

/** Returns a PROXY protocol header of version 1 for an IPv4 or IPv6 client. */
export const lineFor = (address: string, port: number): Buffer =>
  address.includes(':')
    ? Buffer.from(`PROXY TCP6 ${address} ::1 ${port} 443\r\n`)
    : Buffer.from(`PROXY TCP4 ${address} 127.0.0.1 ${port} 443\r\n`)

interface Binary {
  /** Command: 0 is LOCAL, 1 is PROXY. */
  readonly command?: number
  /** Byte of address family and transport. */
  readonly protocol?: number
  readonly addresses?: Buffer
  readonly tlvs?: Buffer
}

const SIGNATURE = Buffer.from('0d0a0d0a000d0a515549540a', 'hex')

/** Returns a PROXY protocol header of version 2, by default for TCP over IPv4. */
export function binaryHeader({
  command = 1,
  protocol = 0x11,
  addresses = ipv4Of('203.0.113.7', 4000),
  tlvs,
}: Binary = {}): Buffer {
  const rest = tlvs ? Buffer.concat([addresses, tlvs]) : addresses
  return Buffer.concat([SIGNATURE, Buffer.from([0x20 | command, protocol, rest.length >> 8, rest.length & 0xff]), rest])
}

/** Returns source and destination in the format of version 2. */
export const ipv4Of = (source: string, port: number): Buffer =>
  Buffer.from([...source.split('.').map(Number), 127, 0, 0, 1, port >> 8, port & 0xff, 0, 22])
