import Trust

/// Security policies for some of a session's hosts. All others have the session's
/// ``SessionConfiguration/securityPolicy``.
///
///     try configuration.trustPolicies.add(
///         SecurityPolicy(mode: .publicKey, pins: [pin]), for: ["**.example.com"])
public struct TrustPolicies: Sendable, Hashable {
    struct Rule: Sendable, Hashable {
        let patterns: [HostPattern]
        let policy: SecurityPolicy
    }

    private(set) var rules: [Rule] = []

    /// Creates no policies.
    public init() {}

    /// Adds a policy. If several have patterns that match a host, the one that was added first
    /// applies.
    ///
    /// - Parameters:
    ///   - policy: The policy. If it has pins, the hosts are not contacted in clear text.
    ///   - hosts: Patterns of hosts: `api.example.com`, `*.example.com` for exactly one more label,
    ///     `**.example.com` for the domain and all its subdomains; each with an optional `:port`.
    /// - Throws: ``ClientError`` with ``ClientError/Reason/invalidSecurityPolicy`` if there are no
    ///   patterns, or one is not valid.
    public mutating func add(
        _ policy: SecurityPolicy, for hosts: [String]
    ) throws(ClientError) {
        guard !hosts.isEmpty else {
            throw ClientError(
                .invalidSecurityPolicy, "the policy has no hosts; expected at least one pattern")
        }
        var patterns: [HostPattern] = []
        for host in hosts {
            do throws(HostPatternError) { patterns.append(try HostPattern(host)) } catch {
                throw ClientError(
                    .invalidSecurityPolicy, "the host pattern \(host): \(error.problem)",
                    underlying: error)
            }
        }
        rules.append(Rule(patterns: patterns, policy: policy))
    }

    /// Returns the policy for a host, or `nil` if that is the session's.
    ///
    /// - Parameters:
    ///   - host: A name or an address, without a port.
    ///   - port: The port of the URL.
    public func policy(for host: String, port: Int) -> SecurityPolicy? {
        guard let port = UInt16(exactly: port) else { return nil }
        return rules.first { rule in
            rule.patterns.contains { $0.matches(host: host, port: port) }
        }?.policy
    }
}
