// The global `Buffer` is a getter: files on the path of requests and chunks import it, so that each use costs less.
import { Buffer } from 'node:buffer'

/** Copies bytes into memory of their own, so that the copy does not keep the larger buffer they came in. A string is read as latin1. */
export function ownBytes(bytes: Uint8Array | string): Buffer {
  const own = Buffer.allocUnsafeSlow(bytes.length)
  if (typeof bytes === 'string') own.write(bytes, 0, 'latin1')
  else own.set(bytes)
  return own
}
