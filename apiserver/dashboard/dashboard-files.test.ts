import { expect, test } from 'vitest'
import { BUILT, readDashboard } from './dashboard-files.ts'

/** Limit of all files that the first visit loads, in bytes. */
const LIMIT = 150 * 1024

test('the built page loads only files of its own folder, none inline, and is small', () => {
  const files = readDashboard()
  expect(files, BUILT).toBeDefined()
  const html = files?.page.plain.toString() ?? ''
  expect(html).not.toMatch(/<script>|<style|style=|https?:|\bon\w+=/)
  const links = [...html.matchAll(/(?:src|href)="\/dashboard\/assets\/([^"]+)"/g)].map(([, name]) => name ?? '')
  expect(links).toHaveLength(3)
  const loaded = links.map((name) => files?.assets.get(name))
  expect(loaded.map((file) => file?.type.replace(/;.*/, ''))).toEqual(['image/svg+xml', 'text/css', 'text/javascript'])
  const size = [files?.page, ...loaded].reduce((sum, file) => sum + (file?.gzip.length ?? Infinity), 0)
  expect(size).toBeLessThan(LIMIT)
})

test('a dashboard that is not built has no files', () => {
  expect(readDashboard('/nowhere')).toBeUndefined()
})
