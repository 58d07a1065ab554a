import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { z } from 'zod'
import { expect, test, describe } from 'vitest'
import fc from 'fast-check'
import { readJsonBody, hasControl, parseQuery } from './request-parser.ts'
import { route } from './route.ts'

const post = route({
  ...{ method: 'post', path: '/v1/toys', on: ['shared'], id: 'createToy', summary: '', replies: {} },
  body: z.object({}),
  handle: () => Promise.reject(new Error('not called')),
})

test('a disconnect during the body is a client error, not an internal one', async () => {
  const req = new IncomingMessage(new Socket())
  req.headers = { 'content-type': 'application/json', 'content-length': '10' }
  req.push('{"na')
  const reading = readJsonBody(req, post)
  req.destroy(new Error('aborted'))
  await expect(reading).rejects.toMatchObject({ code: 'invalid_json', status: 400 })
})

describe('a query string', () => {
  test.each([
    { query: '', values: {} },
    { query: 'a=1&b=2', values: { a: '1', b: '2' } },
    { query: 'a', values: { a: '' } },
    { query: 'a=b=c&', values: { a: 'b=c' } },
    { query: 'a+b=%2B+%C3%A4', values: { 'a b': '+ ä' } },
  ])('"$query" is read', ({ query, values }) => {
    expect(parseQuery(query)).toEqual({ values, errors: [] })
  })

  test.each([
    { query: 'a=1&a=1', field: 'a' },
    { query: 'a=%', field: 'a' },
    { query: '%ff=1', field: 'query' },
    { query: 'a=%00', field: 'a' },
    { query: '%0a=1', field: 'query' },
    { query: '__proto__=1&__proto__=2', field: '__proto__' },
  ])('"$query" is refused for $field', ({ query, field }) => {
    expect(parseQuery(query).errors.map((error) => error.field)).toEqual([field])
  })

  test('written by URLSearchParams is parsed back', () => {
    const text = fc.string({ unit: 'binary' }).filter((value) => !hasControl(value) && value.isWellFormed())
    const entries = fc.uniqueArray(fc.tuple(text.filter((name) => name !== ''), text), { selector: ([name]) => name }) // prettier-ignore
    fc.assert(
      fc.property(entries, (pairs) => {
        const { values, errors } = parseQuery(new URLSearchParams(pairs).toString())
        expect(errors).toEqual([])
        expect(Object.entries(values).sort()).toEqual([...pairs].sort())
      }),
    )
  })
})
