import { Counter, Gauge, type Registry } from 'prom-client'
import type { AcmeSettings, TunnelEndpoint } from '../../crds/tunnel-endpoint.ts'
import type { Cache } from '../../store/cache.ts'
import { budgetOf, registeredDomain } from './budget.ts'
import type { OrderResult } from './order-failure.ts'

interface MetricsDeps {
  readonly registry: Registry
  readonly endpoints: Cache<typeof TunnelEndpoint>
  /** Returns the budget that is left for a registered domain. */
  readonly left: (settings: AcmeSettings, domain: string) => Promise<number>
}

/** Creates the metrics of orders and budgets (docs/certificates.md, "Metrics"). */
export function createAcmeMetrics({ registry, endpoints, left }: MetricsDeps) {
  const results = new Counter({
    name: 'mooring_acme_orders_total',
    help: 'Attempts to obtain a certificate by ACME, by result.',
    labelNames: ['result'],
    registers: [registry],
  })
  for (const result of ['issued', 'failed', 'check_failed', 'rate_limited', 'over_budget']) results.inc({ result }, 0)
  const ofAcme = () =>
    endpoints.list().flatMap(({ metadata, spec: { issuer, acme, domain } }) =>
      // Below a public suffix each tunnel is a registered domain of its own.
      issuer === 'acme' && acme && registeredDomain(`t.${domain}`) !== `t.${domain}`
        ? [{ name: metadata.name, acme, domain }]
        : [],
    )
  new Gauge({
    name: 'mooring_acme_budget_remaining',
    help: 'First certificates that may still be ordered within 7 days, by endpoint.',
    labelNames: ['endpoint'],
    registers: [registry],
    async collect() {
      const counted = ofAcme().map(async ({ name, acme, domain }) => [name, await left(acme, registeredDomain(domain))] as const)
      const results = await Promise.allSettled(counted)
      this.reset()
      // A number that cannot be read is left out, so that the other metrics are still shown.
      for (const result of results) if (result.status === 'fulfilled') this.set({ endpoint: result.value[0] }, result.value[1])
    },
  })
  new Gauge({
    name: 'mooring_acme_budget_limit',
    help: 'First certificates that may be ordered within 7 days, by endpoint.',
    labelNames: ['endpoint'],
    registers: [registry],
    collect() {
      this.reset()
      for (const { name, acme } of ofAcme()) this.set({ endpoint: name }, budgetOf(acme))
    },
  })
  return { orderDone: (result: OrderResult) => results.inc({ result }) }
}
