import type { IncomingMessage } from 'node:http'
import { isFields } from '../../crds/formats/fields.ts'
import { ApiError } from './errors.ts'
import type { AnyRoute } from './route.ts'

export const BODY_LIMIT = 65_536

/** Content types of JSON. RFC 8259 requires UTF-8, so a parameter other than that charset is rejected. */
const JSON_TYPE = /^application\/json\s*(;\s*charset="?utf-8"?\s*)?$/i
const MERGE_PATCH_TYPE = /^application\/merge-patch\+json\s*(;\s*charset="?utf-8"?\s*)?$/i

/**
 * Reads the JSON object in a request's body. A route without a body schema accepts an absent body with any Content-Type and gets `{}`.
 * @throws ApiError `unsupported_media_type`, `too_large`, `invalid_json`; `invalid_request` when the value is not an object
 */
export async function readJsonBody(req: IncomingMessage, route: AnyRoute): Promise<object> {
  const bytes = await readBytes(req)
  if (bytes.length === 0 && !route.body) return {}
  if (bytes.length === 0) throw new ApiError('invalid_json', 'the body is missing; send a JSON object')
  checkType(req, route)
  return parseObject(decode(bytes))
}

function checkType({ headers }: IncomingMessage, { method }: AnyRoute): void {
  const type = headers['content-type'] ?? ''
  if ((headers['content-encoding'] ?? 'identity') !== 'identity') {
    throw new ApiError('unsupported_media_type', 'send the body without a Content-Encoding')
  }
  if (JSON_TYPE.test(type) || (method === 'patch' && MERGE_PATCH_TYPE.test(type))) return
  const allowed = method === 'patch' ? 'application/merge-patch+json or application/json' : 'application/json'
  throw new ApiError('unsupported_media_type', `the Content-Type of the body must be ${allowed}`)
}

async function readBytes(req: IncomingMessage): Promise<Buffer> {
  if (Number(req.headers['content-length'] ?? 0) > BODY_LIMIT) throw tooLarge()
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of chunksOf(req)) {
    size += chunk.length
    if (size > BODY_LIMIT) throw tooLarge()
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

/** Yields the body of a request. @throws ApiError when the caller disconnects: a client error that must not be logged as a failure */
async function* chunksOf(req: IncomingMessage): AsyncGenerator<Buffer> {
  try {
    // Leaving the loop early must keep the socket open for the answer.
    yield* req.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>
  } catch (cause) {
    throw new ApiError('invalid_json', 'the body is incomplete', { cause })
  }
}

const tooLarge = () => new ApiError('too_large', `the body is larger than ${BODY_LIMIT / 1024} KiB (${BODY_LIMIT} bytes)`)

function decode(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (cause) {
    throw new ApiError('invalid_json', 'the body is not UTF-8', { cause })
  }
}

function parseObject(text: string): object {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    // The parser's own message quotes the body, which may hold a secret.
    throw new ApiError('invalid_json', 'the body is not valid JSON; send one JSON object in UTF-8')
  }
  if (isFields(value)) return value
  const message = 'must be a JSON object'
  throw new ApiError('invalid_request', `the body ${message}`, { details: [{ field: 'body', message }] })
}
