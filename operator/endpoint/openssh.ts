import { createPublicKey, type JsonWebKey, type KeyObject, randomBytes } from 'node:crypto'
import { MooringError } from '../../shared/errors.ts'

/** Encodes a length and the bytes (RFC 4251, section 5: string). */
function text(value: Buffer | string): Buffer {
  const bytes = Buffer.from(value)
  const length = Buffer.alloc(4)
  length.writeUInt32BE(bytes.length)
  return Buffer.concat([length, bytes])
}

/** Encodes a positive number (RFC 4251, section 5: mpint): no leading zeros, except one before a first bit that is set. */
function number(base64url: string): Buffer {
  const padded = Buffer.from(base64url, 'base64url')
  const bytes = padded.subarray(
    Math.max(
      0,
      padded.findIndex((byte) => byte !== 0),
    ),
  )
  return text((bytes[0] ?? 0) & 0x80 ? Buffer.concat([Buffer.from([0]), bytes]) : bytes)
}

type KeyType = 'ssh-ed25519' | 'ssh-rsa' | 'ecdsa-sha2-nistp256'

/** Returns the SSH name of the type of a key. @throws MooringError `unknown_key` for a key of another type */
function typeOf({ kty = '', crv = '' }: JsonWebKey): KeyType {
  if (kty === 'OKP' && crv === 'Ed25519') return 'ssh-ed25519'
  if (kty === 'RSA') return 'ssh-rsa'
  if (kty === 'EC' && crv === 'P-256') return 'ecdsa-sha2-nistp256'
  throw new MooringError('unknown_key', `no host key is of type ${kty} ${crv}`)
}

type Fields = (field: 'x' | 'y' | 'd' | 'n' | 'e' | 'qi' | 'p' | 'q') => string

/** Reads fields of a JWK as bytes; the type of the key guarantees that they are present. */
const fieldsOf =
  (jwk: JsonWebKey): Fields =>
  (field) =>
    jwk[field] ?? ''

/** Encodes an uncompressed point (SEC 1, section 2.3.3). */
const pointOf = (field: Fields): Buffer => Buffer.concat([Buffer.from([4]), bytesOf(field('x')), bytesOf(field('y'))])
const bytesOf = (base64url: string): Buffer => Buffer.from(base64url, 'base64url')

/** Fields after the type in the public part (RFC 4253, section 6.6; RFC 5656, section 3.1; RFC 8709, section 4). */
const PUBLIC: Readonly<Record<KeyType, (field: Fields) => readonly Buffer[]>> = {
  'ssh-ed25519': (field) => [text(bytesOf(field('x')))],
  'ssh-rsa': (field) => [number(field('e')), number(field('n'))],
  'ecdsa-sha2-nistp256': (field) => [text('nistp256'), text(pointOf(field))],
}

/** Fields after the type in the private part (OpenSSH, PROTOCOL.key; draft-miller-ssh-agent, section 3.2). */
const PRIVATE: Readonly<Record<KeyType, (field: Fields) => readonly Buffer[]>> = {
  'ssh-ed25519': (field) => [text(bytesOf(field('x'))), text(Buffer.concat([bytesOf(field('d')), bytesOf(field('x'))]))],
  'ssh-rsa': (field) => (['n', 'e', 'd', 'qi', 'p', 'q'] as const).map((name) => number(field(name))),
  'ecdsa-sha2-nistp256': (field) => [text('nistp256'), text(pointOf(field)), number(field('d'))],
}

function blobOf(key: KeyObject): { readonly type: KeyType; readonly blob: Buffer } {
  const jwk = createPublicKey(key).export({ format: 'jwk' })
  const type = typeOf(jwk)
  return { type, blob: Buffer.concat([text(type), ...PUBLIC[type](fieldsOf(jwk))]) }
}

/** Returns the line of a key in OpenSSH's public key format, `ssh-ed25519 AAAA…`. @throws MooringError `unknown_key` */
export function publicLine(key: KeyObject): string {
  const { type, blob } = blobOf(key)
  return `${type} ${blob.toString('base64')}`
}

/** First bytes of a file with one unencrypted key. */
const HEAD = Buffer.concat([
  Buffer.from('openssh-key-v1\0'),
  ...[text('none'), text('none'), text('')],
  Buffer.from([0, 0, 0, 1]),
])
const paddingOf = (length: number): Buffer => Buffer.from(Array.from({ length }, (_, index) => index + 1))

/** Encodes a key in OpenSSH's format, unencrypted (OpenSSH, PROTOCOL.key). @throws MooringError `unknown_key` */
export function openSshPrivateKey(key: KeyObject): string {
  const { type, blob } = blobOf(key)
  const check = randomBytes(4)
  const inner = Buffer.concat([check, check, text(type), ...PRIVATE[type](fieldsOf(key.export({ format: 'jwk' }))), text('')])
  const padding = paddingOf((8 - (inner.length % 8)) % 8)
  const body = Buffer.concat([HEAD, text(blob), text(Buffer.concat([inner, padding]))]).toString('base64')
  return `-----BEGIN OPENSSH PRIVATE KEY-----\n${(body.match(/.{1,70}/g) ?? []).join('\n')}\n-----END OPENSSH PRIVATE KEY-----\n`
}

const FILE = /^-----BEGIN OPENSSH PRIVATE KEY-----\s([A-Za-z0-9+/=\s]+)-----END OPENSSH PRIVATE KEY-----\s*$/

/**
 * Returns the line of the public half of a private key file in OpenSSH's format; undefined unless the file is complete, unencrypted and of
 * a supported type. Does not verify that the numbers of the key belong together.
 */
export function publicLineIn(file: string): string | undefined {
  const bytes = Buffer.from(FILE.exec(file)?.[1] ?? '', 'base64')
  if (!bytes.subarray(0, HEAD.length).equals(HEAD)) return undefined
  const [blob, secret] = textsIn(bytes.subarray(HEAD.length)).texts
  if (!blob || !secret) return undefined
  const type = textsIn(blob).texts[0]?.toString()
  return isType(type) && isWhole(secret, blob, type) ? `${type} ${blob.toString('base64')}` : undefined
}

const isType = (name = ''): name is KeyType => Object.hasOwn(PUBLIC, name)
/** Number of strings in a private part: the type, the fields of {@link PRIVATE}, and a comment. */
const PARTS: Readonly<Record<KeyType, number>> = { 'ssh-ed25519': 4, 'ecdsa-sha2-nistp256': 5, 'ssh-rsa': 8 }

/** Whether a private part has two equal checks, all its fields, the same public key as `blob`, and its padding. */
function isWhole(secret: Buffer, blob: Buffer, type: KeyType): boolean {
  const { texts, rest } = textsIn(secret.subarray(8))
  const key = textsIn(blob).texts.at(-1)
  return (
    secret.subarray(0, 4).equals(secret.subarray(4, 8)) &&
    texts.length === PARTS[type] &&
    texts[0]?.toString() === type &&
    texts.some((part) => key?.equals(part)) &&
    rest.equals(paddingOf(rest.length))
  )
}

/** Splits bytes into the strings that {@link text} encoded, and the rest. */
function textsIn(bytes: Buffer): { readonly texts: readonly Buffer[]; readonly rest: Buffer } {
  const texts: Buffer[] = []
  let rest = bytes
  while (rest.length >= 4 && rest.readUInt32BE() <= rest.length - 4) {
    const end = 4 + rest.readUInt32BE()
    texts.push(rest.subarray(4, end))
    rest = rest.subarray(end)
  }
  return { texts, rest }
}
