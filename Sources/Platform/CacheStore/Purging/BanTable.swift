import HTTPCore

/// The bans in force. To ask about a response costs a few lookups, however many there are: one for
/// its key, one for each tag, one for each label of its host, and a binary search among the
/// prefixes. A value without locks.
///
/// Patterns other than prefixes are found by their hashes: 64 bits under a random seed, so that at
/// worst, and never in practice, a response too many is purged.
package struct BanTable: Sendable {
    package init() {}

    /// The maximum number of patterns.
    static let maximumPatterns = 16_384
    /// The maximum number of bytes of patterns.
    static let maximumBytes = 4 << 20

    private var everything = BanMarks()
    private var keys: [UInt64: BanMarks] = [:]
    private var hosts: [UInt64: BanMarks] = [:]
    private var tags: [UInt64: BanMarks] = [:]
    private var prefixes = PrefixTable<BanMarks>()
    /// The patterns with their bans: what the tables above are made of.
    private(set) var patterns: [BanPattern: BanMarks] = [:]
    private(set) var bytes = 0
    /// Further fields whose members are tags, in lower case.
    package var tagFields: [[UInt8]] = []
    private let seed = UInt64.random(in: 0...(.max))

    package var isEmpty: Bool { patterns.isEmpty }
    package var count: Int { patterns.count }
    /// Whether a response's tags have to be looked at.
    var hasTags: Bool { !tags.isEmpty }

    // MARK: Changing

    /// Adds a ban. If there are too many then, the oldest half of them become one of everything
    /// that they were about: more is purged, never less.
    /// - Returns: how many patterns were given up for that.
    package mutating func add(_ ban: Ban) -> Int {
        insert(ban.pattern) { $0.add(ban.mark, isSoft: ban.isSoft) }
        guard count > Self.maximumPatterns || bytes > Self.maximumBytes else { return 0 }
        return mergeOldest()
    }

    private mutating func mergeOldest() -> Int {
        let byAge = patterns.filter { $0.key != .everything }
            .sorted { $0.value.serial < $1.value.serial }
        var merged = BanMarks()
        var left = byAge.count
        var number = 0
        // At least half, and as many as it takes.
        for (pattern, marks) in byAge {
            let isEnough = left <= Self.maximumPatterns / 2 && bytes <= Self.maximumBytes / 2
            guard !isEnough else { break }
            merged.add(marks)
            forget(pattern)
            left -= 1
            number += 1
        }
        prefixes.removeAll { patterns[.prefix($0)] == nil }
        // A soft ban of everything beside a hard one of something is two bans of everything.
        insert(.everything) { $0.add(merged) }
        return number
    }

    private mutating func insert(_ pattern: BanPattern, _ change: (inout BanMarks) -> Void) {
        if patterns[pattern] == nil { bytes += pattern.count }
        change(&patterns[pattern, default: BanMarks()])
        let marks = patterns[pattern] ?? BanMarks()
        set(pattern, marks)
    }

    private mutating func set(_ pattern: BanPattern, _ marks: BanMarks?) {
        switch pattern {
        case .everything: everything = marks ?? BanMarks()
        case .key(let bytes): keys[hash(bytes, 0)] = marks
        case .host(let host):
            hosts[hash(host.name, Self.salt(host.reach, host.port))] = marks
        case .tag(let tag, let origin): tags[hash(tag, hash(of: origin))] = marks
        case .prefix(let bytes): prefixes[bytes] = marks
        }
    }

    /// Removes a pattern, but not yet from the prefixes: of those, many are removed at a time.
    private mutating func forget(_ pattern: BanPattern) {
        guard patterns.removeValue(forKey: pattern) != nil else { return }
        bytes -= pattern.count
        if case .prefix = pattern { return }
        set(pattern, nil)
    }

    /// Sets up to which row the ban with this serial goes.
    mutating func settle(_ pattern: BanPattern, serial: UInt64, through: Int64) {
        guard var marks = patterns[pattern] else {
            // Merged meanwhile.
            if everything.serial >= serial {
                insert(.everything) { marks in
                    marks.hard?.reach(through)
                    marks.soft?.reach(through)
                }
            }
            return
        }
        if marks.hard?.serial == serial { marks.hard?.reach(through) }
        if marks.soft?.serial == serial { marks.soft?.reach(through) }
        patterns[pattern] = marks
        set(pattern, marks)
    }

    /// Removes the bans that have been carried out.
    /// - Returns: the serials that are not in force any longer.
    mutating func retire(_ isDone: (BanMark) -> Bool) -> [UInt64] {
        var retired: [UInt64] = []
        var hasForgotten = false
        for (pattern, marks) in patterns {
            var rest = marks
            if let hard = marks.hard, isDone(hard) {
                retired.append(hard.serial)
                rest.hard = nil
            }
            if let soft = marks.soft, isDone(soft) {
                retired.append(soft.serial)
                rest.soft = nil
            }
            guard rest != marks else { continue }
            if rest == BanMarks() {
                forget(pattern)
                hasForgotten = true
            } else {
                patterns[pattern] = rest
                set(pattern, rest)
            }
        }
        if hasForgotten { prefixes.removeAll { patterns[.prefix($0)] == nil } }
        return retired
    }

    /// All bans.
    var all: [Ban] {
        patterns.flatMap { pattern, marks in
            [
                marks.hard.map { Ban(pattern: pattern, isSoft: false, mark: $0) },
                marks.soft.map { Ban(pattern: pattern, isSoft: true, mark: $0) },
            ].compactMap { $0 }
        }
    }

    // MARK: Asking

    /// What they make of a response.
    package func verdict(
        key: UnsafeRawBufferPointer, head: UnsafeRawBufferPointer, _ age: BanAge
    ) -> BanVerdict {
        guard !isEmpty else { return .none }
        var found = Found(age: age)
        let stored = StoredURI(key)
        findByKey(stored, &found)
        if hasTags {
            let ofOrigin = XXHash64.hash(stored.origin, seed: seed)
            ResponseTags.visit(head, further: tagFields) { tag in
                found.add(tags[XXHash64.hash(tag, seed: seed)])
                found.add(tags[XXHash64.hash(tag, seed: seed ^ ofOrigin)])
            }
        }
        return found.verdict
    }

    private func findByKey(_ stored: StoredURI, _ found: inout Found) {
        found.add(everything)
        if !keys.isEmpty {
            found.add(keys[XXHash64.hash(stored.uri, seed: seed)])
        }
        if !prefixes.isEmpty { prefixes.visit(stored.uri) { found.add($0) } }
        if !hosts.isEmpty { findByHost(stored, &found) }
    }

    private func findByHost(_ stored: StoredURI, _ found: inout Found) {
        let (host, port) = (stored.host, stored.port)
        func look(_ name: UnsafeRawBufferPointer, _ reach: PurgeHost.Reach) {
            found.add(hosts[XXHash64.hash(name, seed: seed ^ Self.salt(reach, nil))])
            found.add(hosts[XXHash64.hash(name, seed: seed ^ Self.salt(reach, port))])
        }
        look(host, .exact)
        look(host, .anyDepth)
        // An address has no labels.
        guard host.first != UInt8(ascii: "["), host.count <= 255 else { return }
        var rest = host
        var isFirst = true
        while let dot = rest.firstIndex(of: UInt8(ascii: ".")) {
            rest = UnsafeRawBufferPointer(rebasing: rest[(dot + 1)...])
            if isFirst { look(rest, .oneLabel) }
            isFirst = false
            look(rest, .anyDepth)
        }
    }

    /// The marks that apply to one response.
    private struct Found {
        let age: BanAge
        var gone: BanMark?
        var stale: BanMark?

        mutating func add(_ marks: BanMarks?) {
            guard let marks else { return }
            if let hard = marks.hard, age.isBefore(hard) { gone = .later(gone, hard) }
            if let soft = marks.soft, age.isBefore(soft) { stale = .later(stale, soft) }
        }

        var verdict: BanVerdict {
            if let gone { return .gone(gone.serial) }
            if let stale { return .stale(stale.serial, since: stale.time) }
            return .none
        }
    }

    // MARK: Hashes

    private func hash(_ bytes: [UInt8], _ salt: UInt64) -> UInt64 {
        bytes.withUnsafeBytes { XXHash64.hash($0, seed: seed ^ salt) }
    }

    /// What distinguishes the tags of an origin from those of all.
    private func hash(of origin: [UInt8]?) -> UInt64 {
        guard let origin else { return 0 }
        return origin.withUnsafeBytes { XXHash64.hash($0, seed: seed) }
    }

    private static func salt(_ reach: PurgeHost.Reach, _ port: UInt16?) -> UInt64 {
        UInt64(reach.rawValue) << 17 | (port.map { 1 << 16 | UInt64($0) } ?? 0)
    }
}
