import { createHash, createHmac } from 'node:crypto'
import fc from 'fast-check'
import { expect, test, vi } from 'vitest'
import { createScram, type ScramExchange } from './scram.ts'

const sha256 = (data: Buffer): Buffer => createHash('sha256').update(data).digest()
const hmac = (key: Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest()
const failed = expect.objectContaining({ code: 'engine_failed' }) as Error

/** Plays the server (RFC 5802, section 3), which has only the verifier. Returns whether the client's proof is right, and the final message. */
async function serve(verifier: string, exchange: ScramExchange): Promise<{ proven: boolean; final: string }> {
  const [, iterations = '', salt = '', stored = '', server = ''] =
    /^SCRAM-SHA-256\$(\d+):([^$]+)\$([^:]+):(.+)$/.exec(verifier) ?? []
  const bare = exchange.first.slice('n,,'.length)
  const first = `${bare.slice('n=*,'.length)}server-nonce,s=${salt},i=${iterations}`
  const final = await exchange.answer(first)
  const [withoutProof = '', proof = ''] = final.split(',p=')
  const message = [bare, first, withoutProof].join()
  const storedKey = Buffer.from(stored, 'base64')
  const signature = hmac(storedKey, message)
  const clientKey = Buffer.from(Buffer.from(proof, 'base64').map((byte, index) => byte ^ (signature[index] ?? 0)))
  const proven = withoutProof.startsWith('c=biws,') && sha256(clientKey).equals(storedKey)
  return { proven, final: `v=${hmac(Buffer.from(server, 'base64'), message).toString('base64')}` }
}

test('a verifier accepts its password, and the client accepts the server', async () => {
  const printable = fc.string({
    unit: fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code)),
    minLength: 1,
  })
  await fc.assert(
    fc.asyncProperty(printable, fc.boolean(), async (password, sameProcess) => {
      const scram = createScram()
      const verifier = await scram.verifier(password)
      // Another process derives the key from the salt in the server's message.
      const exchange = (sameProcess ? scram : createScram()).exchange(password)
      const { proven, final } = await serve(verifier, exchange)
      expect(proven).toBe(true)
      exchange.check(final)
    }),
    { numRuns: 20 },
  )
})

test('a verifier rejects another password, and the client rejects the server', async () => {
  const scram = createScram()
  const exchange = scram.exchange('other')
  const { proven, final } = await serve(await scram.verifier('right'), exchange)
  expect(proven).toBe(false)
  expect(() => exchange.check(final)).toThrow(failed)
})

test('a password has one verifier per process, and each process uses its own salt', async () => {
  const scram = createScram()
  const password = scram.draw()
  expect(await scram.verifier(password)).toBe(await scram.verifier(password))
  expect(await createScram().verifier(password)).not.toBe(await scram.verifier(password))
})

test('each drawn password is new, whether derived in advance or not', () => {
  vi.useFakeTimers()
  const scram = createScram()
  const drawn = [scram.draw(), scram.draw()]
  vi.advanceTimersByTime(1_000)
  drawn.push(scram.draw(), scram.draw())
  vi.useRealTimers()
  expect(new Set(drawn).size).toBe(4)
})

test.each(['', 'with space', 'ümlaut', 'a\nb'])('verifier rejects the password %j', async (password) => {
  await expect(createScram().verifier(password)).rejects.toEqual(failed)
})

test.each([
  { does: "another login's nonce", message: () => 'r=nonce-of-another,s=AAAA,i=4096' },
  { does: 'only the nonce of the client', message: (own: string) => `r=${own},s=AAAA,i=4096` },
  { does: 'too few iterations', message: (own: string) => `r=${own}x,s=AAAA,i=1000` },
  { does: 'a missing salt', message: (own: string) => `r=${own}x,i=4096` },
  { does: 'a mandatory extension', message: (own: string) => `m=x,r=${own}x,s=AAAA,i=4096` },
])('the client does not answer a message with $does', async ({ message }) => {
  const exchange = createScram().exchange('secret')
  const own = exchange.first.slice('n,,n=*,r='.length)
  await expect(exchange.answer(message(own))).rejects.toEqual(failed)
})

test.each(['e=other-error', 'v=AAAA', '', 'v='])('the client rejects a server with the final message %j', async (final) => {
  const exchange = createScram().exchange('secret')
  await exchange.answer(`${exchange.first.slice('n,,n=*,'.length)}x,s=AAAA,i=4096`)
  expect(() => exchange.check(final)).toThrow(failed)
})
