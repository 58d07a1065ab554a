import { z } from 'zod'
import type { Account } from './account.ts'
import { AcmeError } from './acme-error.ts'
import type { AcmeClient, AcmeResponse } from './client.ts'
import { Order } from './order-state.ts'

/** List of an account's orders (RFC 8555, section 7.1.2.1). step-ca answers with the bare array. */
const OrderList = z.union([
  z.object({ orders: z.array(z.string()) }).transform(({ orders }) => orders),
  z.array(z.string()),
  z.null().transform(() => []),
])
const OrderOwner = z.object({ orders: z.string().optional() })

/** Maximum number of orders that are read to find one again. */
const FIND_MAX = 20
/** Maximum number of pages of the list of orders that are read; Pebble has three orders on a page. */
const PAGES_MAX = 30

/**
 * Finds an open order for a name in the account's list of orders, which some CAs do not have. A list or an order that cannot be read is left out: another
 * order can be made.
 * @throws AcmeError of a CA that cannot be reached or asks for fewer requests
 */
export async function findOrder(identifier: string, { client, url }: Account): Promise<string | undefined> {
  const owner = await readable(client.post(url, null, OrderOwner))
  const orders = await ordersOf(client, owner?.data.orders)
  for (const each of orders.slice(-FIND_MAX).reverse()) {
    const found = await readable(client.post(each, null, Order))
    if (found && isOpenFor(found.data, identifier)) return each
  }
  return undefined
}

const isOpenFor = ({ status, identifiers }: Order, identifier: string): boolean =>
  (status === 'pending' || status === 'ready') && identifiers.length === 1 && identifiers[0]?.value === identifier

/** Returns the URLs of all pages of a list, as the CA orders them: new orders are last. */
async function ordersOf(client: Pick<AcmeClient, 'post'>, first: string | undefined): Promise<readonly string[]> {
  const orders: string[] = []
  let page = first
  for (let pages = 0; page !== undefined && pages < PAGES_MAX; pages += 1) {
    const list = await readable(client.post(page, null, OrderList))
    orders.push(...(list?.data ?? []))
    page = list?.next
  }
  return orders
}

async function readable<T>(answer: Promise<AcmeResponse<T>>): Promise<AcmeResponse<T> | undefined> {
  try {
    return await answer
  } catch (error) {
    if (error instanceof AcmeError && error.code !== 'acme_unreachable' && !error.isLimit) return undefined
    throw error
  }
}
