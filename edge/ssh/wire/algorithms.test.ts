import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ciphersFor, peekOffer } from './algorithms.ts'
import { string } from '../wire-format.ts'

const GCM = ['aes128-gcm@openssh.com', 'aes256-gcm@openssh.com']

function hello(toServer: readonly string[], toClient: readonly string[]): Buffer {
  const lists = [['curve25519-sha256'], ['ssh-ed25519'], toServer, toClient].map((names) => string(names.join()))
  const payload = Buffer.concat([Buffer.of(20), Buffer.alloc(16), ...lists])
  const header = Buffer.alloc(5)
  header.writeUInt32BE(1 + payload.length + 4)
  return Buffer.concat([Buffer.from('SSH-2.0-client\r\n'), header, payload, Buffer.alloc(4)])
}

describe('the ciphers that a client is offered', () => {
  test.each([
    { does: 'only AES-GCM when it has it', toServer: ['chacha20-poly1305@openssh.com', ...GCM], expected: GCM },
    { does: 'the one AES-GCM cipher that it has', toServer: [GCM[1] ?? ''], expected: [GCM[1]] },
  ])('are $does', ({ toServer, expected }) => {
    expect(ciphersFor({ toServer, toClient: toServer })).toEqual(expected)
  })

  test('are all when it has AES-GCM in one direction only, or its offer is unknown', () => {
    expect(ciphersFor({ toServer: GCM, toClient: ['aes128-ctr'] })).toContain('aes128-ctr')
    expect(ciphersFor(undefined)).toContain('chacha20-poly1305@openssh.com')
  })
})

describe('the first bytes of a client', () => {
  const names = fc.array(fc.constantFrom('a', 'b-c@d', 'aes128-ctr', ...GCM), { minLength: 1, maxLength: 5 })

  test('reveal its ciphers once they are complete', () => {
    fc.assert(
      fc.property(names, names, fc.uint8Array({ maxLength: 20 }), (toServer, toClient, rest) => {
        const data = hello(toServer, toClient)
        expect(peekOffer(Buffer.concat([data, rest]))).toEqual({ toServer, toClient })
        for (let cut = 0; cut < data.length; cut += 1) expect(peekOffer(data.subarray(0, cut))).toBe('more')
      }),
      { numRuns: 20 },
    )
  })

  test('of any content never throw', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        const peek = peekOffer(Buffer.concat([Buffer.from('SSH-2.0-x\n'), bytes]))
        expect(typeof peek === 'string' ? ['more', 'unreadable'] : [peek]).toContain(peek)
      }),
    )
  })
})
