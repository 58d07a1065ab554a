// The global is a getter: files that requests and chunks go through import Buffer, so that each use costs less.
import { Buffer } from 'node:buffer'

/** In memory of their own: what is kept must not keep the larger buffer that it came in. A text is latin1. */
export function ownBytes(bytes: Uint8Array | string): Buffer {
  const own = Buffer.allocUnsafeSlow(bytes.length)
  if (typeof bytes === 'string') own.write(bytes, 0, 'latin1')
  else own.set(bytes)
  return own
}
