/**
 * Returns the names of the certificate for unknown hosts: hostnames below the domain without a tunnel, and the domain itself. With it a
 * visitor gets an error page instead of a broken connection. The local CA of the installation always signs it: a public CA may not sign a
 * wildcard by HTTP-01 (CA/Browser Forum, Baseline Requirements, section 3.2.2.4.19), and the budget of public certificates is for tunnels.
 * Pure.
 */
export function unknownHostNames(domain: string): readonly string[] {
  // Clients reject a wildcard of a domain without a dot.
  return domain.includes('.') ? [`*.${domain}`, domain] : [domain]
}
