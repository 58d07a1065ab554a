import fc from 'fast-check'
import { expect, test } from 'vitest'
import { INVALID_URL, openRepository, parseS3Url } from './open.ts'

test.each([
  { url: '/var/backups', name: '/var/backups' },
  { url: '/var/backups/', name: '/var/backups' },
  { url: '/var/../srv/my backups', name: '/srv/my backups' },
  { url: 'file:///var/backups', name: '/var/backups' },
  { url: 'file:///srv/my%20backups', name: '/srv/my backups' },
  { url: 's3://backups', name: 's3://backups' },
  { url: 's3://backups/', name: 's3://backups' },
  { url: 's3://my.backups-1/mooring/prod', name: 's3://my.backups-1/mooring/prod' },
  { url: 's3://backups/mooring/', name: 's3://backups/mooring' },
])('openRepository opens $url', ({ url, name }) => {
  expect(openRepository(url).name).toBe(name)
})

test.each([
  { does: 'an empty text', url: '' },
  { does: 'a relative path', url: 'backups' },
  { does: 'another scheme', url: 'https://backups.s3.amazonaws.com/' },
  { does: 'a file on another host', url: 'file://server/backups' },
  { does: 'a file with an encoded slash', url: 'file:///a%2Fb' },
  { does: 'a path with a NUL', url: '/a\0b' },
  { does: 'no bucket', url: 's3://' },
  { does: 'an invalid bucket', url: 's3://My_Backups' },
  { does: 'a bucket with two dots', url: 's3://my..backups' },
  { does: 'a prefix outside', url: 's3://backups/../other' },
  { does: 'an empty part', url: 's3://backups/a//b' },
  { does: 'a query', url: 's3://backups/a?region=x' },
  { does: 'credentials', url: 's3://AKIAEXAMPLE:hunter2@backups/a' },
  { does: 'a long prefix', url: `s3://backups/${'a'.repeat(257)}` },
])('openRepository rejects $does without quoting it', ({ url }) => {
  const open = () => openRepository(url)
  expect(open).toThrow(expect.objectContaining({ code: INVALID_URL }))
  expect(open).toThrow(/must be the path of a directory that begins with "\/"/)
  expect(open).not.toThrow(/hunter2/)
})

test('a parsed URL has a bucket and a prefix of valid parts', () => {
  const anything = fc.string({ unit: fc.constantFrom('a', 'B', '0', '.', '-', '_', '/', '@', ':', '?', '#', '%', ' ') })
  fc.assert(
    fc.property(anything, (rest) => {
      const place = parseS3Url(`s3://${rest}`)
      if (!place) return
      const { bucket, prefix } = place
      expect(`${bucket}/${prefix}`.replace(/\/$/, '')).toBe(rest.replace(/\/$/, ''))
      expect(`${bucket}/${prefix}`).toMatch(/^[a-z0-9.-]{3,63}\/[A-Za-z0-9._/-]*$/)
    }),
  )
})
