import { createPrivateKey, generateKeyPairSync, type JsonWebKey, type KeyObject, randomBytes, sign } from 'node:crypto'
import { MooringError } from '../../shared/errors.ts'
import { mpint, string, uint32, WireReader } from './wire-format.ts'

/** Private key by which the edge proves its identity. */
export interface HostKey {
  readonly type: 'ssh-ed25519' | 'ecdsa-sha2-nistp256' | 'ssh-rsa'
  /** Public key as SSH transmits it. */
  readonly blob: Buffer
  /** `ssh-ed25519 AAAA…` */
  readonly publicLine: string
  sign(data: Buffer, hash: string | undefined): Buffer
}

const MAGIC = Buffer.from('openssh-key-v1\0')
const PEM = /^-----BEGIN OPENSSH PRIVATE KEY-----\s([A-Za-z0-9+/=\s]+)-----END OPENSSH PRIVATE KEY-----\s*$/
const BLOCK_BYTES = 8
const RSA_BITS = 3072

/** Generates one key of each type that clients request, as files in OpenSSH's format. Takes about a second, for RSA. */
export function generateHostKeys(): readonly string[] {
  return [
    generateKeyPairSync('ed25519').privateKey,
    generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey,
    generateKeyPairSync('rsa', { modulusLength: RSA_BITS }).privateKey,
  ].map((key) => fileOf(key))
}

/**
 * Parses a host key.
 * @throws MooringError `invalid_host_key` when it is not an Ed25519, ECDSA P-256 or RSA private key in OpenSSH's format, without a
 * passphrase
 */
export function parseHostKey(file: string): HostKey {
  const key = readFile(file)
  if (key === undefined)
    throw new MooringError('invalid_host_key', 'a host key is not an unencrypted private key in OpenSSH’s format')
  const { type, publicBlob } = partsOf(key)
  return {
    type,
    blob: publicBlob,
    publicLine: `${type} ${publicBlob.toString('base64')}`,
    sign: (data, hash) => sign(type === 'ssh-ed25519' ? null : (hash ?? 'sha256'), data, key),
  }
}

interface Parts {
  readonly type: HostKey['type']
  readonly publicBlob: Buffer
  readonly privateFields: Buffer
}

const field = (jwk: JsonWebKey, name: keyof JsonWebKey) => Buffer.from(String(jwk[name]), 'base64url')

function partsOf(key: KeyObject): Parts {
  const jwk = key.export({ format: 'jwk' })
  const fields = fieldsOf(jwk)
  return {
    type: fields.type,
    publicBlob: Buffer.concat([string(fields.type), ...fields.public]),
    privateFields: Buffer.concat([string(fields.type), ...fields.private]),
  }
}

function fieldsOf(jwk: JsonWebKey): { type: HostKey['type']; public: Buffer[]; private: Buffer[] } {
  const at = (name: keyof JsonWebKey) => field(jwk, name)
  if (jwk.kty === 'OKP') {
    return {
      type: 'ssh-ed25519',
      public: [string(at('x'))],
      private: [string(at('x')), string(Buffer.concat([at('d'), at('x')]))],
    }
  }
  if (jwk.kty === 'EC') {
    const point = [string('nistp256'), string(Buffer.concat([Buffer.of(4), at('x'), at('y')]))]
    return { type: 'ecdsa-sha2-nistp256', public: point, private: [...point, mpint(at('d'))] }
  }
  const [n, e, d, qi, p, q] = (['n', 'e', 'd', 'qi', 'p', 'q'] as const).map((name) => mpint(at(name))) as [
    Buffer,
    Buffer,
    ...Buffer[],
  ]
  return { type: 'ssh-rsa', public: [e, n], private: [n, e, ...[d, qi, p, q].filter((part) => part !== undefined)] }
}

function fileOf(key: KeyObject): string {
  const { publicBlob, privateFields } = partsOf(key)
  const check = randomBytes(4)
  const block = Buffer.concat([check, check, privateFields, string('')])
  const padding = Buffer.from(Array.from({ length: (BLOCK_BYTES - (block.length % BLOCK_BYTES)) % BLOCK_BYTES }, (_, i) => i + 1))
  const body = Buffer.concat([
    ...[MAGIC, string('none'), string('none'), string(''), uint32(1)],
    ...[string(publicBlob), string(Buffer.concat([block, padding]))],
  ])
  const lines = body.toString('base64').replace(/.{70}/g, '$&\n')
  return `-----BEGIN OPENSSH PRIVATE KEY-----\n${lines.trimEnd()}\n-----END OPENSSH PRIVATE KEY-----\n`
}

function readFile(file: string): KeyObject | undefined {
  const body = Buffer.from(PEM.exec(file)?.[1] ?? '', 'base64')
  if (!body.subarray(0, MAGIC.length).equals(MAGIC)) return undefined
  const reader = new WireReader(body.subarray(MAGIC.length))
  if (reader.text() !== 'none') return undefined
  reader.string()
  reader.string()
  reader.uint32()
  reader.string()
  const block = new WireReader(reader.string() ?? Buffer.alloc(0))
  if (block.uint32() !== block.uint32()) return undefined
  return readFields(block)
}

function readFields(block: WireReader): KeyObject | undefined {
  const type = block.text()
  const text = (value: Buffer | undefined) => (value ?? Buffer.alloc(0)).toString('base64url')
  if (type === 'ssh-ed25519') {
    const x = block.string()
    return keyOf({ kty: 'OKP', crv: 'Ed25519', x: text(x), d: text(block.string()?.subarray(0, 32)) })
  }
  if (type === 'ecdsa-sha2-nistp256') {
    block.string()
    const point = block.string() ?? Buffer.alloc(0)
    const d = block.unsigned() ?? Buffer.alloc(0)
    const whole = Buffer.concat([Buffer.alloc(Math.max(0, 32 - d.length)), d])
    return keyOf({ kty: 'EC', crv: 'P-256', x: text(point.subarray(1, 33)), y: text(point.subarray(33)), d: text(whole) })
  }
  return type === 'ssh-rsa' ? readRsa(block) : undefined
}

function readRsa(block: WireReader): KeyObject | undefined {
  const [n, e, d, qi, p, q] = Array.from({ length: 6 }, () =>
    BigInt(`0x0${(block.unsigned() ?? Buffer.alloc(0)).toString('hex')}`),
  )
  if (!n || !e || !d || !qi || !p || !q) return undefined
  const numbers = { n, e, d, p, q, dp: d % (p - 1n), dq: d % (q - 1n), qi }
  const texts = Object.entries(numbers).map(([name, value]) => [name, base64url(value)])
  return keyOf({ kty: 'RSA', ...(Object.fromEntries(texts) as Record<keyof typeof numbers, string>) })
}

function base64url(value: bigint): string {
  const hex = value.toString(16)
  return Buffer.from(hex.padStart(hex.length + (hex.length % 2), '0'), 'hex').toString('base64url')
}

function keyOf(jwk: JsonWebKey): KeyObject | undefined {
  try {
    return createPrivateKey({ key: jwk, format: 'jwk' })
  } catch {
    return undefined
  }
}
