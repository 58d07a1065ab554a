import { expect, test } from 'vitest'
import { elfHash, requireNewerCurl } from './curl-symbols.ts'

const NAME = 'CURL_OPENSSL_3'
const HEADER_BYTES = 64
const SECTION_BYTES = 64

/** Creates an ELF file with one section of type `type` whose fourth word is the hash of a version, and a string with its name. */
function program(name: string, type: number): Buffer {
  const file = Buffer.alloc(HEADER_BYTES + SECTION_BYTES + 64)
  file.writeBigUInt64LE(BigInt(HEADER_BYTES), 40)
  file.writeUInt16LE(SECTION_BYTES, 58)
  file.writeUInt16LE(1, 60)
  file.writeUInt32LE(type, HEADER_BYTES + 4)
  file.writeBigUInt64LE(BigInt(HEADER_BYTES + SECTION_BYTES), HEADER_BYTES + 24)
  file.writeBigUInt64LE(32n, HEADER_BYTES + 32)
  file.writeUInt32LE(elfHash(name), HEADER_BYTES + SECTION_BYTES + 12)
  file.write(`${name}\0`, HEADER_BYTES + SECTION_BYTES + 32, 'latin1')
  return file
}

test('the hash of a version is that of the linker', () => {
  expect(elfHash('GLIBC_2.2.5')).toBe(0x09691a75)
})

test('a program that needs the older libcurl needs the newer one afterwards, and nothing else changes', () => {
  const changed = program(NAME, 0x6ffffffe)
  requireNewerCurl(changed)
  expect(changed).toEqual(program('CURL_OPENSSL_4', 0x6ffffffe))
})

test.each([
  { what: 'another version', file: program('CURL_OPENSSL_4', 0x6ffffffe) },
  { what: 'no versions', file: program(NAME, 1) },
])('a program that needs $what is rejected', ({ file }) => {
  expect(() => requireNewerCurl(file)).toThrow(expect.objectContaining({ code: 'archive_invalid' }))
})
