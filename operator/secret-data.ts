import { randomInt } from 'node:crypto'
import type { Secret } from '../crds/core.ts'
import type { KeyPair } from './certificates/local-ca.ts'

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const PASSWORD_LENGTH = 24

/** Returns 24 base62 characters from a CSPRNG, some 142 bits. */
export function randomPassword(): string {
  return Array.from({ length: PASSWORD_LENGTH }, () => BASE62[randomInt(BASE62.length)]).join('')
}

/** Encodes text values for a Secret's `data`. */
export function encodeSecret(values: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(values).map(([key, value]) => [key, Buffer.from(value, 'utf8').toString('base64')]))
}

/** Decodes one value of a Secret's `data`; undefined when it is absent. */
export function decodeSecret(data: Readonly<Record<string, string>>, key: string): string | undefined {
  const value = data[key]
  return value === undefined ? undefined : Buffer.from(value, 'base64').toString('utf8')
}

/** Key pair in a Secret of type `kubernetes.io/tls`; empty texts for absent values. */
export function keyPairIn({ data }: Pick<Secret, 'data'>): KeyPair {
  return { certificate: decodeSecret(data, 'tls.crt') ?? '', key: decodeSecret(data, 'tls.key') ?? '' }
}
