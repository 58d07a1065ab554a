/** Flags that lift quotas and rate limits for a measure. */
export const UNLIMITED = [
  ...['--write-rate', '1000000', '--write-burst', '1000000', '--read-rate', '1000000', '--read-burst', '1000000'],
  ...['--quota-instances', '1000000', '--quota-tunnels', '1000000'],
] as const
