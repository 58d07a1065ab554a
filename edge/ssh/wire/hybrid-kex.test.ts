import { createHash, createPublicKey, decapsulate, diffieHellman, generateKeyPairSync } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { answerHybrid } from './hybrid-kex.ts'

function client() {
  const kem = generateKeyPairSync('ml-kem-768')
  const x = generateKeyPairSync('x25519')
  const rawX = Buffer.from(x.publicKey.export({ format: 'jwk' }).x ?? '', 'base64url')
  return { kem, x, sent: Buffer.concat([kem.publicKey.export({ format: 'raw-public' }), rawX]) }
}

test('client and server derive the same secret from both exchanges', () => {
  const { kem, x, sent } = client()
  const { reply, secret } = answerHybrid(sent)
  expect(reply).toHaveLength(1088 + 32)
  const theirs = createPublicKey({
    key: { kty: 'OKP', crv: 'X25519', x: reply.subarray(1088).toString('base64url') },
    format: 'jwk',
  })
  const shared = diffieHellman({ privateKey: x.privateKey, publicKey: theirs })
  const expected = createHash('sha256')
    .update(decapsulate(kem.privateKey, reply.subarray(0, 1088)))
    .update(shared)
    .digest()
  expect(secret).toEqual(expected)
})

test('a point of low order is rejected', () => {
  const { sent } = client()
  sent.fill(0, 1184)
  expect(() => answerHybrid(sent)).toThrow()
})

test('numbers of a wrong length are rejected', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 1215 }), (bytes) => {
      expect(() => answerHybrid(Buffer.from(bytes))).toThrow()
    }),
    { numRuns: 20 },
  )
})
