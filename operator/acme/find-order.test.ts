import { expect, test } from 'vitest'
import type { z } from 'zod'
import type { Account } from './account.ts'
import { AcmeError } from './acme-error.ts'
import { findOrder } from './find-order.ts'

const NAME = 'a.example.org'
const order = (status: string, value = NAME) => ({
  ...{
    status,
    identifiers: [{ type: 'dns', value }],
    authorizations: ['https://ca.example/z/1'],
    finalize: 'https://ca.example/f',
  },
})

interface Page {
  readonly data: unknown
  readonly next?: string
}

/** Account at a CA with these resources by URL; any other URL is 404. */
function accountWith(pages: Readonly<Record<string, Page>>): Account {
  const post = async <T>(url: string, _payload: object | null, schema: z.ZodType<T>) => {
    const page = pages[url]
    if (!page) throw new AcmeError('acme_rejected', 'not found', { status: 404 })
    const { data, error } = schema.safeParse(page.data)
    if (error) throw new AcmeError('acme_invalid_answer', 'invalid')
    return { data, location: undefined, retryAfterMs: undefined, next: page.next }
  }
  return { client: { post }, url: 'account' } as unknown as Account
}

const ACCOUNT = { data: { orders: 'list' } }

test.each<[string, Readonly<Record<string, Page>>, string | undefined]>([
  ['a list', { list: { data: { orders: ['1', '2'] } }, 1: { data: order('pending') }, 2: { data: order('invalid') } }, '1'],
  ['the bare list of step-ca', { list: { data: ['1'] }, 1: { data: order('ready') } }, '1'],
  [
    'a later page',
    { list: { data: { orders: ['1'] }, next: 'more' }, more: { data: { orders: ['2'] } }, 2: { data: order('pending') } },
    '2',
  ],
  ['a list with an order that cannot be read', { list: { data: ['2', '1'] }, 2: { data: order('pending') } }, '2'],
  ['a list of orders for other names', { list: { data: ['1'] }, 1: { data: order('pending', 'b.example.org') } }, undefined],
  ['an empty list', { list: { data: null } }, undefined],
  ['an invalid list', { list: { data: 'none' } }, undefined],
  ['no list', {}, undefined],
])('in %s an open order for the name is found, or none', async (_of, pages, url) => {
  expect(await findOrder(NAME, accountWith({ account: ACCOUNT, ...pages }))).toBe(url)
})

test('a CA that asks for fewer requests is not asked for another order', async () => {
  const client = { post: () => Promise.reject(new AcmeError('acme_rejected', 'slow down', { status: 429 })) }
  await expect(findOrder(NAME, { client, url: 'account' } as unknown as Account)).rejects.toThrow('slow down')
})
