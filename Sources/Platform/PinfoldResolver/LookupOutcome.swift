import HTTPCore

/// The outcomes of both questions as one answer with its lifetime.
struct LookupOutcome: Sendable, Hashable {
    /// IPv6 addresses before IPv4 ones, or why there are none.
    var result: Result<[IPAddress], ResolveError>
    /// How long it may be used, within the limits of the options.
    var ttlSeconds: Int64

    /// Combines both families' outcomes.
    ///
    /// One family's addresses are enough. Without any, "no such name" from either question is
    /// decisive (it holds for every type); "no data" must come from both; otherwise a failure is
    /// reported.
    init(v4: FamilyOutcome, v6: FamilyOutcome, options: ResolverOptions) {
        switch (v6, v4) {
        case (.addresses(let first, let firstTTL), .addresses(let second, let secondTTL)):
            self.init(first + second, ttl: min(firstTTL, secondTTL), options: options)
        case (.addresses(let addresses, let ttl), .noData),
            (.addresses(let addresses, let ttl), .noSuchName),
            (.noData, .addresses(let addresses, let ttl)),
            (.noSuchName, .addresses(let addresses, let ttl)):
            self.init(addresses, ttl: ttl, options: options)
        case (.addresses(let addresses, let ttl), .failed),
            (.failed, .addresses(let addresses, let ttl)):
            let bounded = min(ttl, options.halfAnswerTTLSeconds)
            self.init(addresses, ttl: bounded, options: options)
        case (.noSuchName(let first), .noSuchName(let second)):
            let least = LookupOutcome.least(first, second)
            self.init(negative: .nxdomain, ttl: least, options: options)
        case (.noSuchName(let ttl), .noData), (.noSuchName(let ttl), .failed),
            (.noData, .noSuchName(let ttl)), (.failed, .noSuchName(let ttl)):
            self.init(negative: .nxdomain, ttl: ttl, options: options)
        case (.noData(let first), .noData(let second)):
            let least = LookupOutcome.least(first, second)
            self.init(negative: .noData, ttl: least, options: options)
        case (.failed, .failed(let failure)), (.failed(let failure), .noData),
            (.noData, .failed(let failure)):
            self.init(failure: failure, options: options)
        }
    }

    /// What is known from one family while the other is awaited, or `nil` without addresses.
    init?(part: FamilyOutcome, options: ResolverOptions) {
        guard case .addresses(let addresses, let ttl) = part else { return nil }
        self.init(addresses, ttl: min(ttl, options.halfAnswerTTLSeconds), options: options)
    }

    private init(_ addresses: [IPAddress], ttl: Int64, options: ResolverOptions) {
        result = .success(addresses)
        ttlSeconds = min(max(ttl, options.minimumTTLSeconds), options.maximumTTLSeconds)
    }

    private init(negative kind: ResolveError, ttl: Int64?, options: ResolverOptions) {
        result = .failure(kind)
        let ttl = ttl ?? options.defaultNegativeTTLSeconds
        ttlSeconds = min(ttl, options.maximumNegativeTTLSeconds)
    }

    private init(failure: ResolveError, options: ResolverOptions) {
        result = .failure(failure)
        ttlSeconds = options.failureTTLSeconds
    }

    /// Seconds as milliseconds; TTLs, and therefore limits on them, end at 2^31 - 1 (RFC 2181 §8).
    static func milliseconds(_ seconds: Int64) -> Int64 {
        min(max(seconds, 0), Int64(Int32.max)) * 1000
    }

    private static func least(_ first: Int64?, _ second: Int64?) -> Int64? {
        guard let first, let second else { return first ?? second }
        return min(first, second)
    }
}
