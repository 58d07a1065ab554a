import { createSocket } from 'node:dgram'
import { once } from 'node:events'

/** Answers a question with IPv4 addresses; undefined: no answer at all. `index` counts the questions for A records from 0. */
export type Zone = (name: string, index: number) => readonly string[] | undefined

const HEADER = 12
const TYPE_A = 1

/** Starts a DNS server (RFC 1035) for A records on loopback. Other types get empty answers. */
export async function startDnsServer(zone: Zone): Promise<{ readonly address: string } & AsyncDisposable> {
  const socket = createSocket('udp4')
  let asked = 0
  socket.on('message', (query, from) => {
    const { name, end } = nameIn(query)
    const isA = query.readUInt16BE(end) === TYPE_A
    const addresses = isA ? zone(name, asked++) : []
    if (addresses) socket.send(responseTo(query.subarray(0, end + 4), addresses), from.port, from.address)
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  return {
    address: `127.0.0.1:${socket.address().port}`,
    async [Symbol.asyncDispose]() {
      socket.close()
      await once(socket, 'close')
    },
  }
}

function nameIn(query: Buffer): { readonly name: string; readonly end: number } {
  const labels: string[] = []
  let at = HEADER
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length))
    at += 1 + length
  }
  return { name: labels.join('.'), end: at + 1 }
}

function responseTo(question: Buffer, addresses: readonly string[]): Buffer {
  const head = Buffer.from(question)
  // A response without recursion, one question, no further sections.
  head.writeUInt16BE(0x8180, 2)
  head.writeUInt16BE(addresses.length, 6)
  head.writeUInt32BE(0, 8)
  // Each record names the question, is of type A and class IN, lives 0 s, and has 4 bytes.
  const record = Buffer.from([0xc0, HEADER, 0, TYPE_A, 0, 1, 0, 0, 0, 0, 0, 4])
  return Buffer.concat([head, ...addresses.flatMap((address) => [record, Buffer.from(address.split('.').map(Number))])])
}
