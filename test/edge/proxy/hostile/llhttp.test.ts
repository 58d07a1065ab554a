import { createServer } from 'node:http'
import { Duplex } from 'node:stream'
import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { HeadReader } from '../../../../edge/proxy/http1/head-reader.ts'
import { BAD_LINE } from '../../../../edge/proxy/errors.ts'
import { ABSOLUTE, isRejection, readRequestHead, type RequestHead } from '../../../../edge/proxy/head/request-head.ts'
import { requestBody } from '../../../../edge/proxy/upstream/body.ts'
import type { Rejection } from '../../../../shared/tunnel-decisions.ts'
import { createMutator } from '../../../support/edge/attack-tools.ts'
import { IS_FULL, randomSeed } from '../../../support/edge/random-seed.ts'
import { patient } from '../../../support/patience.ts'
import { smugglingCorpus } from '../../../support/edge/smuggling-corpus.ts'

/** Runs the edge's HTTP/1.x parser and Node's, llhttp, on the same bytes. Both must agree on the requests that the edge accepts. */

/** Mutated requests in a run of the gate, and milliseconds of mutations in a full run. */
const [MUTATIONS, FULL_MS] = [3_000, 60_000]
const HOST = 'tunnel.test'

/** Complete request as one parser reads it; `body` is latin1. */
interface Read {
  readonly method: string
  readonly target: string
  readonly body: string
}

/** Returns the requests that the edge reads, up to the first that it rejects or that is incomplete. */
function readByEdge(bytes: Buffer): readonly Read[] {
  const found: Read[] = []
  let rest = bytes
  while (rest.length > 0) {
    const heads = new HeadReader<RequestHead | Rejection>(readRequestHead, BAD_LINE)
    if (heads.push(rest) !== 'whole' || isRejection(heads.head)) return found
    const { method, target, framing, keepAlive, upgrade } = heads.head
    const body = requestBody(framing.length, framing.chunked)
    const parts: Buffer[] = []
    const after = heads.takeRest()
    const end = body.done
      ? 0
      : body.take(after, 0, { payload: (chunk, from, to) => void parts.push(Buffer.from(chunk.subarray(from, to))) })
    if (end < 0 || !body.done) return found
    found.push({ method, target, body: Buffer.concat(parts).toString('latin1') })
    // Later bytes are not a request of this connection.
    if (!keepAlive || upgrade !== undefined) return found
    rest = Buffer.from(after.subarray(end))
  }
  return found
}

/** Returns the requests that Node's HTTP server reads, with the code of the error that ended it. */
async function readByNode(bytes: Buffer): Promise<{ readonly requests: readonly Read[]; readonly error: string | undefined }> {
  const heads: { readonly read: () => Read; done: boolean }[] = []
  let error: string | undefined
  const server = createServer({ requireHostHeader: false, maxHeaderSize: 65_536 }, (req, res) => {
    const parts: Buffer[] = []
    const { method = '', url: target = '' } = req
    const head = { read: () => ({ method, target, body: Buffer.concat(parts).toString('latin1') }), done: false }
    heads.push(head)
    // Node stops reading at an upgrade. The edge ignores the field and continues.
    if (req.headers.upgrade !== undefined) error = 'upgrade'
    req.on('data', (part: Buffer) => parts.push(part))
    req.on('end', () => (head.done = true))
    req.on('error', () => undefined)
    res.end()
  })
  server.on('clientError', (reason: NodeJS.ErrnoException) => (error = reason.code))
  server.on('checkContinue', (req, res) => server.emit('request', req, res))
  const socket = new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done() })
  socket.on('error', () => socket.destroy())
  server.emit('connection', socket)
  socket.push(bytes)
  socket.push(null)
  // All bytes are in memory: the parser is done after one turn of the event loop, and its streams after another.
  await setImmediate()
  await setImmediate()
  const whole = heads.findIndex(({ done }) => !done)
  const requests = heads.slice(0, whole < 0 ? undefined : whole).map(({ read }) => read())
  socket.destroy()
  return { requests, error }
}

/**
 * Converts an absolute target to origin form, as the edge does (RFC 9112, section 3.2.2). For OPTIONS without a path that is `*`
 * (section 3.2.4).
 */
const inOriginForm = ({ method, target, body }: Read): Read => {
  const [, , , path] = ABSOLUTE.exec(target) ?? []
  if (path === undefined) return { method, target, body }
  if (path === '' && method === 'OPTIONS') return { method, target: '*', body }
  return { method, target: path.startsWith('/') ? path : `/${path}`, body }
}

/**
 * Compares the requests that both parsers accept, in order. Either parser may reject a request that the other accepts: llhttp
 * has a list of methods and rejects a tab after `chunked`; the edge rejects ambiguous requests.
 * @param seed seed of mutated bytes, for the message of a failure
 * @returns the number of requests that both accept
 */
async function expectAgreement(bytes: Buffer, seed?: number): Promise<number> {
  const byEdge = readByEdge(bytes)
  if (byEdge.length === 0) return 0
  const { requests, error } = await readByNode(bytes)
  const byNode = requests.map(inOriginForm)
  const both = error === undefined ? byEdge.length : Math.min(byEdge.length, byNode.length)
  const what = `seed ${seed ?? 'none'}, ${error} ${JSON.stringify(bytes.toString('latin1'))}`
  expect(byNode.slice(0, both), what).toEqual(byEdge.slice(0, both))
  return both
}

const SEEDS = [
  `GET /path?query HTTP/1.1\r\nHost: ${HOST}\r\nAccept: */*\r\nCookie: a=b\r\n\r\nGET /next HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`,
  `POST /a HTTP/1.1\r\nHost: ${HOST}\r\nContent-Length: 5\r\n\r\nhelloGET /next HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`,
  `POST /b HTTP/1.1\r\nHost: ${HOST}\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1;x="y"\r\n!\r\n0\r\nT: v\r\n\r\nGET /next HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`,
  `GET http://${HOST}/absolute HTTP/1.1\r\nHost: ${HOST}\r\n\r\nOPTIONS * HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`,
  `OPTIONS http://${HOST} HTTP/1.1\r\nHost: ${HOST}\r\n\r\nGET http://${HOST}?query HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`,
  `GET / HTTP/1.0\r\nHost: ${HOST}\r\nConnection: keep-alive\r\n\r\nGET /next HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`,
  `PUT /c HTTP/1.1\r\nHost: ${HOST}\r\nContent-Length: 0\r\nConnection: close\r\n\r\nGET /never HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`,
].map((text) => Buffer.from(text, 'latin1')) as [Buffer, ...Buffer[]]

test('both parsers agree on requests of ordinary clients', { retry: 0 }, async () => {
  const found = await Promise.all(SEEDS.map((bytes) => expectAgreement(bytes)))
  expect(found).toEqual([2, 2, 2, 2, 2, 2, 1])
})

test('both parsers agree on smuggling requests that the edge accepts', { retry: 0 }, async () => {
  const found = await Promise.all(
    Object.values(smugglingCorpus(HOST))
      .flat()
      .map(({ bytes }) => expectAgreement(Buffer.from(bytes, 'latin1'))),
  )
  expect(found.filter((count) => count > 0).length).toBeGreaterThan(20)
})

test('both parsers agree on an OPTIONS request with an absolute target and no path', { retry: 0 }, async () => {
  expect(await expectAgreement(Buffer.from(`OPTIONS http://${HOST} HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`, 'latin1'))).toBe(1)
})

test('both parsers agree on mutated requests that the edge accepts', { retry: 0, timeout: patient(FULL_MS) }, async () => {
  const seed = IS_FULL ? randomSeed('mutated requests') : 1
  const { mutate, pick } = createMutator(seed)
  const end = performance.now() + FULL_MS
  let accepted = 0
  for (let count = 0; IS_FULL ? performance.now() < end : count < MUTATIONS; count++)
    accepted += await expectAgreement(mutate(pick(SEEDS)), seed)
  expect(accepted, `seed ${seed}`).toBeGreaterThan(MUTATIONS / 4)
})
