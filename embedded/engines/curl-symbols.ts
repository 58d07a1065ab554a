import { MooringError } from '../../shared/errors.ts'

/** Version of libcurl's symbols that Debian 9 had, and the version that later releases have for the same functions. */
const OLD = 'CURL_OPENSSL_3'
const NEW = 'CURL_OPENSSL_4'

/** Type of the section that lists needed symbol versions: SHT_GNU_verneed (Linux Standard Base Core, "Symbol Version Requirements"). */
const SHT_GNU_VERNEED = 0x6ffffffe

/** Offsets in the header of a 64-bit ELF file, and in a section header (elf(5), Elf64_Ehdr and Elf64_Shdr). */
const EHDR = { sectionHeaders: 40, sectionHeaderSize: 58, sectionHeaderCount: 60 }
const SHDR = { type: 4, offset: 24, size: 32 }

/**
 * Makes a 64-bit little-endian ELF program that was linked with libcurl of Debian 9 accept the libcurl of later releases. Replaces the name
 * and the hash of the symbol version that the program needs, in place.
 * @throws MooringError `archive_invalid` when the program does not need that version
 */
export function requireNewerCurl(program: Buffer): void {
  let names = 0
  for (let at = program.indexOf(`${OLD}\0`); at >= 0; at = program.indexOf(`${OLD}\0`, at + 1)) {
    program.write(NEW, at, 'latin1')
    names += 1
  }
  const hashes = neededVersions(program).filter((at) => program.readUInt32LE(at) === elfHash(OLD))
  for (const at of hashes) program.writeUInt32LE(elfHash(NEW), at)
  if (names === 0 || hashes.length === 0) {
    throw new MooringError('archive_invalid', `the server program does not need ${OLD}, so it is not the expected one`)
  }
}

/** Offsets of all words in the sections of needed symbol versions. */
function neededVersions(program: Buffer): readonly number[] {
  const [start, size] = [Number(program.readBigUInt64LE(EHDR.sectionHeaders)), program.readUInt16LE(EHDR.sectionHeaderSize)]
  const count = program.readUInt16LE(EHDR.sectionHeaderCount)
  const headers = Array.from({ length: count }, (_, index) => start + index * size)
  return headers
    .filter((header) => program.readUInt32LE(header + SHDR.type) === SHT_GNU_VERNEED)
    .flatMap((header) => {
      const offset = Number(program.readBigUInt64LE(header + SHDR.offset))
      const bytes = Number(program.readBigUInt64LE(header + SHDR.size))
      return Array.from({ length: Math.floor(bytes / 4) }, (_, index) => offset + index * 4)
    })
}

/** Hash of a symbol version's name (System V ABI, "Hash Table"). */
export function elfHash(name: string): number {
  let hash = 0
  for (const byte of Buffer.from(name, 'latin1')) {
    hash = ((hash << 4) >>> 0) + byte
    const high = (hash & 0xf0000000) >>> 0
    hash = ((hash ^ (high >>> 24)) & ~high) >>> 0
  }
  return hash
}
