import { expect, test } from 'vitest'
import { prefersHtml } from './errors.ts'

test.each([
  { accept: '', html: false },
  { accept: '*/*', html: false },
  { accept: 'application/json, text/plain, */*', html: false },
  { accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8', html: true },
  { accept: 'TEXT/HTML ; charset=utf-8', html: true },
  { accept: 'application/json, text/html;q=0.5', html: false },
  { accept: 'application/json;q=0.5, text/html;q=0.9', html: true },
  { accept: 'application/json, text/html', html: false },
  { accept: 'text/html;q=0, application/json', html: false },
  { accept: 'text/html;q=0', html: false },
  { accept: 'text/html;q=junk', html: false },
  { accept: 'text/*', html: true },
  { accept: 'text/*, */*', html: true },
  { accept: 'text/*;q=0.5, */*', html: false },
  { accept: 'text/html, */*', html: true },
  { accept: '*/*, text/html', html: true },
  { accept: 'text/html;q=0.5, */*', html: false },
  { accept: 'text/html;q=0.5, */*;q=0.4', html: true },
  { accept: 'text/*, text/html;q=0', html: false },
  { accept: 'text/*, application/*', html: true },
  { accept: 'application/*, text/*', html: false },
  { accept: 'application/*, text/html', html: true },
  { accept: 'application/json, text/*', html: false },
  { accept: 'text/html, application/json', html: true },
  { accept: 'text/plain', html: false },
  { accept: '*/*;q=0', html: false },
  { accept: 'application/json;q=-1', html: false },
  { accept: `${'a/b,'.repeat(63)}text/html`, html: true },
  { accept: `${'a/b,'.repeat(64)}text/html`, html: false },
])('Accept: $accept is HTML: $html', ({ accept, html }) => {
  expect(prefersHtml(accept)).toBe(html)
})
