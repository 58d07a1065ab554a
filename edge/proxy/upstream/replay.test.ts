import { expect, test } from 'vitest'
import { isReplayable, leavesReusableConnection } from './replay.ts'
import { isRejection, readRequestHead, type RequestHead } from '../head/request-head.ts'

function head(method: string, fields: string): RequestHead {
  const read = readRequestHead(`${method} / HTTP/1.1\r\nHost: a.test\r\n${fields}`)
  if (isRejection(read)) throw new Error(read.detail)
  return read
}

const LENGTH = 'Content-Length: 1\r\n'
const CHUNKS = 'Transfer-Encoding: chunked\r\n'
const UPGRADE = 'Connection: Upgrade\r\nUpgrade: foo\r\n'

test.each([
  { method: 'GET', fields: '', replayable: true, clean: true },
  { method: 'HEAD', fields: '', replayable: true, clean: true },
  { method: 'OPTIONS', fields: '', replayable: true, clean: true },
  { method: 'TRACE', fields: '', replayable: true, clean: true },
  { method: 'DELETE', fields: '', replayable: true, clean: true },
  { method: 'PUT', fields: '', replayable: true, clean: true },
  { method: 'PUT', fields: 'Content-Length: 0\r\n', replayable: true, clean: true },
  { method: 'POST', fields: '', replayable: false, clean: true },
  { method: 'PATCH', fields: '', replayable: false, clean: true },
  { method: 'get', fields: '', replayable: false, clean: true },
  { method: 'GET', fields: UPGRADE, replayable: false, clean: true },
  { method: 'GET', fields: LENGTH, replayable: false, clean: false },
  { method: 'GET', fields: CHUNKS, replayable: false, clean: false },
  { method: 'DELETE', fields: LENGTH, replayable: false, clean: false },
  { method: 'PUT', fields: LENGTH, replayable: false, clean: true },
  { method: 'POST', fields: CHUNKS, replayable: false, clean: true },
])(
  '$method with "$fields" may be sent again: $replayable, may be followed by another: $clean',
  ({ method, fields, replayable, clean }) => {
    const read = head(method, fields)
    expect([isReplayable(read), leavesReusableConnection(read)]).toEqual([replayable, clean])
  },
)
