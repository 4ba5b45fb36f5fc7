import HTTPCore

/// By whom a rule counts.
package struct RateKey: Hashable, Sendable {
    package enum Subject: Hashable, Sendable {
        case client(IPNetwork)
        case user(String)
        case group(String)
        /// All.
        case rule
        /// What of a client does not fit into the table.
        case rest(IPNetwork)
    }

    /// The name of the rule, under which what was used outlives a change of the configuration.
    package let rule: String
    package let subject: Subject

    package init(rule: String, subject: Subject) {
        self.rule = rule
        self.subject = subject
    }
}

/// What has been used by whom, in a bounded table in which each client network has a share. Pure.
///
/// No client gets rid of what it has used by filling it. Only what is at rest is forgotten, as long
/// as there is such; then, what of a client does not fit is counted together for each rule; and
/// what gives way to another client's is of whoever holds the most.
package struct RateTable<Account> {
    private var accounts: ShareTable<RateKey, Account>
    /// Those of what does not fit, which give way to each other alone: a client that asks under two
    /// rules in turn keeps both.
    private var rests: ShareTable<RateKey, Account>
    /// When what is at rest was last looked for, in nanoseconds.
    private var sweptAt = Int64.min
    /// The time between two searches.
    private static var sweepInterval: Int64 { 1_000_000_000 }

    /// The most accounts, of less than a kilobyte each, and the most of what does not fit.
    package static var limit: Int { 65_536 }

    package init(limit: Int = Self.limit) {
        accounts = ShareTable(limit: limit)
        rests = ShareTable(limit: limit)
    }

    package var count: Int { accounts.count + rests.count }

    /// The account of a key, known or new.
    /// - Parameters:
    ///   - client: the network that asks, to which a new account belongs.
    ///   - make: makes one.
    ///   - isAtRest: whether nothing is lost with an account.
    package mutating func account(
        _ key: RateKey, of client: IPNetwork, at now: Int64, make: () -> Account,
        isAtRest: (Account) -> Bool
    ) -> Account {
        if let known = accounts.use(key) { return known }
        if accounts.weight >= accounts.limit,
            sweptAt == .min || now - sweptAt >= Self.sweepInterval
        {
            sweptAt = now
            accounts.removeAll { isAtRest($1) }
            rests.removeAll { isAtRest($1) }
        }
        let made: Account
        let held = accounts.weight(of: client)
        if accounts.weight >= accounts.limit, held > 0, held >= accounts.largestWeight {
            // This client would have to give way: it has no room for more.
            let rest = RateKey(rule: key.rule, subject: .rest(client))
            if let known = rests.use(rest) { return known }
            made = make()
            rests.set(made, for: rest, of: client)
        } else {
            made = make()
            accounts.set(made, for: key, of: client)
        }
        return made
    }
}

extension RateTable: Sendable where Account: Sendable {}
