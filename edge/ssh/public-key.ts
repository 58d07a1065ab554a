import { createHash, createPublicKey, type JsonWebKey, type KeyObject, verify as verifySignature } from 'node:crypto'
import { compact } from '../memory.ts'
import { WireReader } from './wire-format.ts'

/** Hash of an RSA signature, by the name of its algorithm (RFC 8332). Undefined: SHA-1, which is rejected. */
export type RsaHash = 'sha256' | 'sha512' | undefined

export interface PublicKey {
  readonly type: string
  /** Key as SSH transmits it (RFC 4253, section 6.6). */
  readonly blob: Buffer
  /** Fingerprint as OpenSSH prints it, `SHA256:…`. */
  readonly fingerprint: string
  /** Whether this key made the signature of `data`. ECDSA signatures are in DER. */
  verify(data: Buffer, signature: Buffer, hash: RsaHash): boolean
}

const MIN_RSA_BITS = 2048
/** Maximum RSA key size: larger keys only cost time. */
const MAX_RSA_BITS = 16_384
const LINE = /^([a-z0-9@.-]{1,64}) ([A-Za-z0-9+/]+={0,3})( [^\r\n]*)?$/
const CURVES = {
  nistp256: { crv: 'P-256', bytes: 32, hash: 'sha256' },
  nistp384: { crv: 'P-384', bytes: 48, hash: 'sha384' },
  nistp521: { crv: 'P-521', bytes: 66, hash: 'sha512' },
} as const
const UNCOMPRESSED_POINT = 4
/** Flag: the user touched the key (OpenSSH, PROTOCOL.u2f). */
const USER_PRESENT = 0x01
const ED25519_SIGNATURE_BYTES = 64
/** Bytes of flags and counter after the signature of a hardware key. */
const SK_TRAILER_BYTES = 5

type Verify = PublicKey['verify']

/**
 * Parses a key in one line, as OpenSSH writes it; undefined when it is invalid or of a type that may not log in (docs/ssh-logins.md).
 */
export function parsePublicKeyLine(line: string): PublicKey | undefined {
  const [, type = '', base64 = ''] = LINE.exec(line) ?? []
  const blob = compact(Buffer.from(base64, 'base64'))
  const key = parsePublicKey(blob)
  return key?.type === type ? key : undefined
}

export function parsePublicKey(blob: Buffer): PublicKey | undefined {
  const reader = new WireReader(blob)
  const type = reader.text() ?? ''
  const verify = verifierOf(type, reader)
  if (verify === undefined || reader.left > 0) return undefined
  return { type, blob, fingerprint: fingerprintOf(blob), verify }
}

export function fingerprintOf(blob: Buffer): string {
  return `SHA256:${createHash('sha256').update(blob).digest('base64').replace(/=+$/, '')}`
}

function verifierOf(type: string, reader: WireReader): Verify | undefined {
  if (type === 'ssh-ed25519') return ed25519(reader)
  if (type === 'ssh-rsa') return rsa(reader)
  if (type.startsWith('ecdsa-sha2-')) return ecdsa(type.slice('ecdsa-sha2-'.length), reader)
  if (type === 'sk-ssh-ed25519@openssh.com') return hardwareEd25519(reader)
  return type === 'sk-ecdsa-sha2-nistp256@openssh.com' ? hardwareEcdsa(reader) : undefined
}

function ed25519(reader: WireReader): Verify | undefined {
  const key = ed25519Key(reader)
  return key && ((data, signature) => verifySignature(null, data, key, signature))
}

function rsa(reader: WireReader): Verify | undefined {
  const e = reader.unsigned()
  const n = reader.unsigned()
  if (e === undefined || n === undefined || n.length * 8 > MAX_RSA_BITS) return undefined
  const key = keyOf({ kty: 'RSA', n: n.toString('base64url'), e: e.toString('base64url') })
  if ((key?.asymmetricKeyDetails?.modulusLength ?? 0) < MIN_RSA_BITS) return undefined
  return key && ((data, signature, hash) => hash !== undefined && verifySignature(hash, data, key, signature))
}

function ecdsa(curve: string, reader: WireReader): Verify | undefined {
  const read = ecdsaKey(curve, reader)
  return read && ((data, signature) => verifySignature(read.hash, data, read.key, signature))
}

function hardwareEd25519(reader: WireReader): Verify | undefined {
  const key = ed25519Key(reader)
  const application = reader.string()
  if (key === undefined || application === undefined) return undefined
  return (data, signature) =>
    signature.length === ED25519_SIGNATURE_BYTES + SK_TRAILER_BYTES &&
    present(signature) &&
    verifySignature(null, signedByHardware(application, data, signature), key, signature.subarray(0, ED25519_SIGNATURE_BYTES))
}

function hardwareEcdsa(reader: WireReader): Verify | undefined {
  const read = ecdsaKey('nistp256', reader)
  const application = reader.string()
  if (read === undefined || application === undefined) return undefined
  return (data, signature) => {
    const numbers = new WireReader(signature.subarray(0, -SK_TRAILER_BYTES))
    const pair = [numbers.unsigned(), numbers.unsigned()].map((number) => padded(number, CURVES.nistp256.bytes))
    const [r, s] = pair
    if (r === undefined || s === undefined || numbers.left > 0 || !present(signature)) return false
    const key = { key: read.key, dsaEncoding: 'ieee-p1363' } as const
    return verifySignature('sha256', signedByHardware(application, data, signature), key, Buffer.concat([r, s]))
  }
}

const present = (signature: Buffer) => ((signature.at(-SK_TRAILER_BYTES) ?? 0) & USER_PRESENT) !== 0

/** Returns the data that a FIDO key signs instead of `data` (OpenSSH, PROTOCOL.u2f). */
function signedByHardware(application: Buffer, data: Buffer, signature: Buffer): Buffer {
  const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest()
  return Buffer.concat([sha256(application), signature.subarray(-SK_TRAILER_BYTES), sha256(data)])
}

function ed25519Key(reader: WireReader): KeyObject | undefined {
  const x = reader.string()
  return x?.length === 32 ? keyOf({ kty: 'OKP', crv: 'Ed25519', x: x.toString('base64url') }) : undefined
}

function ecdsaKey(name: string, reader: WireReader): { readonly key: KeyObject; readonly hash: string } | undefined {
  const curve = name in CURVES ? CURVES[name as keyof typeof CURVES] : undefined
  const curveName = reader.text()
  const point = reader.string()
  if (!curve || curveName !== name || point?.length !== 1 + 2 * curve.bytes || point[0] !== UNCOMPRESSED_POINT) return undefined
  const [x, y] = [point.subarray(1, 1 + curve.bytes), point.subarray(1 + curve.bytes)].map((half) => half.toString('base64url'))
  const key = keyOf({ kty: 'EC', crv: curve.crv, x: x ?? '', y: y ?? '' })
  return key && { key, hash: curve.hash }
}

function padded(number: Buffer | undefined, bytes: number): Buffer | undefined {
  if (number === undefined || number.length > bytes) return undefined
  return Buffer.concat([Buffer.alloc(bytes - number.length), number])
}

/** Undefined when the numbers are not a valid key, such as a point off its curve. */
function keyOf(jwk: JsonWebKey): KeyObject | undefined {
  try {
    return createPublicKey({ key: jwk, format: 'jwk' })
  } catch {
    return undefined
  }
}
