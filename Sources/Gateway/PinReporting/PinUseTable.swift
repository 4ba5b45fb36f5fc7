/// When each pin was last seen in a server's chain, across restarts: this distinguishes a pin that
/// is no longer used from one that is merely quiet today.
package struct PinUseTable: Sendable, Equatable {
    /// What is known about one pin.
    package struct PinUse: Sendable, Equatable {
        /// Since when it has been watched, in seconds since 1970.
        package var since: Int64
        /// When a server's chain last contained it, or `nil` if never since then.
        package var matched: Int64?
    }

    /// What is known about one pinset.
    package struct PinsetUse: Sendable, Equatable {
        /// When it last evaluated a server, or `nil` if never while watched.
        package var evaluated: Int64?
        /// Its pins, as written in reports.
        package var pins: [String: PinUse] = [:]
    }

    /// The counts of one pinset since the process started.
    package struct Count: Sendable, Equatable {
        /// Evaluations of servers, whatever the result.
        package var evaluations: UInt64
        /// Evaluations in which a server's chain contained a pin, by the pin as written in reports.
        package var matches: [String: UInt64]

        /// Creates the counts.
        package init(evaluations: UInt64 = 0, matches: [String: UInt64] = [:]) {
            self.evaluations = evaluations
            self.matches = matches
        }
    }

    /// By the names of the pinsets.
    package var pinsets: [String: PinsetUse] = [:]

    /// An empty table.
    package init() {}

    /// Records what has happened between two checks of the counters.
    ///
    /// - Parameters:
    ///   - pins: the pins of each pinset, as written in reports. Others are forgotten.
    ///   - now: seconds since 1970.
    package mutating func note(
        _ counts: [String: Count], since before: [String: Count], pins: [String: [String]],
        now: Int64
    ) {
        let now = min(max(now, Self.times.lowerBound), Self.times.upperBound)
        var next: [String: PinsetUse] = [:]
        for (name, texts) in pins {
            var use = pinsets[name] ?? PinsetUse()
            let (count, earlier) = (counts[name] ?? Count(), before[name] ?? Count())
            if count.evaluations > earlier.evaluations { use.evaluated = now }
            var known: [String: PinUse] = [:]
            for text in texts {
                var pin = use.pins[text] ?? PinUse(since: now)
                if count.matches[text] ?? 0 > earlier.matches[text] ?? 0 { pin.matched = now }
                known[text] = pin
            }
            use.pins = known
            next[name] = use
        }
        pinsets = next
    }

    /// Whether a server has matched a pinset; `nil` if no server has been judged by it.
    package func hasMatched(_ pinset: String) -> Bool? {
        guard let use = pinsets[pinset], use.evaluated != nil else { return nil }
        return use.pins.values.contains { $0.matched != nil }
    }

    /// Merges another table: for entries in both, the earlier start of watching and the later
    /// events.
    package mutating func add(_ other: PinUseTable) {
        for (name, use) in other.pinsets {
            var both = pinsets[name] ?? PinsetUse()
            both.evaluated = Self.later(both.evaluated, use.evaluated)
            for (text, theirs) in use.pins {
                let ours = both.pins[text] ?? theirs
                both.pins[text] = PinUse(
                    since: min(ours.since, theirs.since),
                    matched: Self.later(ours.matched, theirs.matched))
            }
            pinsets[name] = both
        }
    }

    /// Forgets the pinsets and pins that are not in another table.
    package mutating func keep(only other: PinUseTable) {
        for (name, use) in pinsets {
            guard let wanted = other.pinsets[name]?.pins else {
                pinsets[name] = nil
                continue
            }
            pinsets[name]?.pins = use.pins.filter { wanted[$0.key] != nil }
        }
    }

    private static func later(_ one: Int64?, _ other: Int64?) -> Int64? {
        guard let one, let other else { return one ?? other }
        return max(one, other)
    }

    /// A pin that nothing has matched for a while, although its pinset has evaluated servers.
    package struct IdlePin: Sendable, Equatable {
        /// Its index among the pinset's pins.
        package var index: Int
        /// The pin as written in reports.
        package var text: String
        /// Since when nothing has matched it, in seconds since 1970.
        package var since: Int64
        /// Whether anything has ever matched it while it was watched.
        package var hasMatched: Bool
    }

    /// Seconds without a match after which a pin is idle: seven days.
    package static let idleSeconds: Int64 = 7 * 86_400

    /// The idle pins of a pinset, in its order.
    ///
    /// - Parameters:
    ///   - pins: the pinset's pins, as written in reports.
    ///   - now: seconds since 1970.
    package func idlePins(of pinset: String, pins: [String], now: Int64) -> [IdlePin] {
        guard let use = pinsets[pinset], let evaluated = use.evaluated else { return [] }
        return pins.enumerated().compactMap { index, text in
            guard let pin = use.pins[text] else { return nil }
            let since = pin.matched ?? pin.since
            guard now - since >= Self.idleSeconds, evaluated > since else { return nil }
            return IdlePin(
                index: index, text: text, since: since, hasMatched: pin.matched != nil)
        }
    }
}

// MARK: - As text

extension PinUseTable {
    /// A line for each pinset, followed by one for each of its pins.
    package var text: String {
        var text = ""
        for (name, use) in pinsets.sorted(by: { $0.key < $1.key }) {
            text += "pinset \(Self.text(use.evaluated)) \(name)\n"
            for (pin, seen) in use.pins.sorted(by: { $0.key < $1.key }) {
                text += "pin \(seen.since) \(Self.text(seen.matched)) \(pin)\n"
            }
        }
        return text
    }

    /// The valid range of times in seconds since 1970: to the end of the year 9999.
    private static let times: ClosedRange<Int64> = 0...253_402_300_799

    private static func text(_ time: Int64?) -> String { time.map { "\($0)" } ?? "-" }

    /// Parses the text of a table; `nil` for anything else.
    package init?(text: String) {
        self.init()
        var current: String?
        for line in text.split(separator: "\n") {
            let parts = line.split(separator: " ", maxSplits: 3)
            if parts.count == 3, parts[0] == "pinset", let evaluated = Self.time(parts[1]) {
                let name = String(parts[2])
                pinsets[name] = PinsetUse(evaluated: evaluated.time)
                current = name
            } else if parts.count == 4, parts[0] == "pin", let current,
                let since = Self.time(parts[1])?.time, let matched = Self.time(parts[2])
            {
                pinsets[current]?.pins[String(parts[3])] = PinUse(
                    since: since, matched: matched.time)
            } else {
                return nil
            }
        }
    }

    private static func time(_ text: Substring) -> (time: Int64?, Void)? {
        if text == "-" { return (nil, ()) }
        guard let time = Int64(text), times.contains(time) else { return nil }
        return (time, ())
    }
}
