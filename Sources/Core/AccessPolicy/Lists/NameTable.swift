import HTTPCore

/// The names of one file, or of several without exceptions, by what they cover.
///
/// A look-up goes through the host from its end, once. It asks only for ends with as many labels as
/// names have, and stops after the longest of them: what it costs depends on the names of the
/// table, not on the host.
struct NameTable {
    private let key: DomainListKey
    private var alone: NameSet
    private var withBelow: NameSet
    private var below: NameSet
    private var exceptions: NameSet
    /// The numbers of labels of the names that cover names below them, or are exceptions.
    private var suffixDepths = DepthSet()
    /// The largest number of labels of any name.
    private var deepest = 0

    /// An empty table.
    ///
    /// - Parameter expected: about how many names there will be.
    init(_ key: DomainListKey, expecting expected: Int) {
        self.key = key
        let none = NameSet(expecting: expected)
        (alone, withBelow, below, exceptions) = (none, none, none, none)
    }

    /// The number of names; before `seal`, with duplicates.
    var count: Int { alone.count + withBelow.count + below.count + exceptions.count }

    var hasExceptions: Bool { !exceptions.isEmpty }

    // MARK: Building

    /// Adds a name, as to a ``DomainListSink``.
    mutating func insert(_ name: Span<UInt8>, _ reach: DomainReach) {
        name.withUnsafeBytes { insert($0, reach) }
    }

    private mutating func insert(_ name: UnsafeRawBufferPointer, _ reach: DomainReach) {
        var hasher = NameHasher(key)
        var quick = QuickHash(key)
        var depth = 1
        var end = name.count
        var rest: UInt64 = 0
        while end > 0 {
            let word = NameWord.ending(name, at: end).lowercased
            depth &+= word.dots.nonzeroBitCount
            guard end >= 8 else {
                rest = word.value >> UInt64(64 &- 8 &* end)
                break
            }
            hasher.absorb(word.value)
            quick.absorb(word.value)
            end &-= 8
        }
        let hash = hasher.hash(rest: rest, count: name.count)
        let other = quick.hash(rest: rest, count: name.count)
        switch reach {
        case .nameAlone: alone.insert(hash, other, depth: depth)
        case .nameAndBelow: withBelow.insert(hash, other, depth: depth)
        case .below: below.insert(hash, other, depth: depth)
        case .exception: exceptions.insert(hash, other, depth: depth)
        }
    }

    /// Adds the names of another table, made with the same key for the same number of names.
    mutating func formUnion(_ other: NameTable) {
        alone.formUnion(other.alone)
        withBelow.formUnion(other.withBelow)
        below.formUnion(other.below)
        exceptions.formUnion(other.exceptions)
    }

    /// Makes the table ready for look-ups; nothing can be added any more.
    mutating func seal(pausing: () -> Void) {
        alone.seal(pausing: pausing)
        withBelow.seal(pausing: pausing)
        below.seal(pausing: pausing)
        exceptions.seal(pausing: pausing)
        suffixDepths = withBelow.depths
        suffixDepths.formUnion(below.depths)
        suffixDepths.formUnion(exceptions.depths)
        deepest = max(suffixDepths.maximum, alone.depths.maximum)
    }

    // MARK: Looking up

    /// Whether the table covers a host: a name does, and no exception.
    ///
    /// - Parameter host: a name in any case, without a dot at its end.
    func covers(_ host: UnsafeRawBufferPointer) -> Bool {
        var quick = QuickHash(key)
        var isCovered = false
        var depth = 0
        var end = host.count
        var rest: UInt64 = 0
        while end > 0 {
            let word = NameWord.ending(host, at: end).lowercased
            var dots = word.dots
            while dots != 0 {
                // How many bits the dot and what precedes it have in the word.
                let before = 64 &- dots.leadingZeroBitCount
                dots ^= 1 << UInt64(before &- 1)
                depth &+= 1
                if depth > deepest { return isCovered }
                guard suffixDepths.contains(depth) else { continue }
                let count = host.count &- end &+ 8 &- before / 8
                let hash = quick.hash(rest: word.value >> UInt64(before), count: count)
                if excepts(host, last: count, hash, depth) { return false }
                if !isCovered, coversBelow(host, last: count, hash, depth) {
                    guard hasExceptions else { return true }
                    isCovered = true
                }
            }
            if end < 8 {
                rest = word.value >> UInt64(64 &- 8 &* end)
                break
            }
            quick.absorb(word.value)
            end &-= 8
        }
        depth &+= 1
        guard depth <= deepest else { return isCovered }
        let count = host.count
        let hash = quick.hash(rest: rest, count: count)
        if excepts(host, last: count, hash, depth) { return false }
        return isCovered || coversItself(host, last: count, hash, depth)
    }

    /// Whether the name that is the last bytes of a host is an exception.
    @inline(__always)
    private func excepts(
        _ host: UnsafeRawBufferPointer, last count: Int, _ quick: UInt64, _ depth: Int
    ) -> Bool {
        exceptions.mayContain(quick, depth: depth) && exceptions.contains(hash(host, count))
    }

    /// Whether it covers the names below it.
    @inline(__always)
    private func coversBelow(
        _ host: UnsafeRawBufferPointer, last count: Int, _ quick: UInt64, _ depth: Int
    ) -> Bool {
        withBelow.mayContain(quick, depth: depth) && withBelow.contains(hash(host, count))
            || below.mayContain(quick, depth: depth) && below.contains(hash(host, count))
    }

    /// Whether it covers itself.
    @inline(__always)
    private func coversItself(
        _ host: UnsafeRawBufferPointer, last count: Int, _ quick: UInt64, _ depth: Int
    ) -> Bool {
        withBelow.mayContain(quick, depth: depth) && withBelow.contains(hash(host, count))
            || alone.mayContain(quick, depth: depth) && alone.contains(hash(host, count))
    }

    @inline(never)
    private func hash(_ host: UnsafeRawBufferPointer, _ count: Int) -> NameHash {
        NameHasher.hash(host, from: host.count &- count, key)
    }
}

extension NameTable: Equatable {
    /// Whether two sealed tables with the same key have the same names, which cover the same.
    static func == (left: NameTable, right: NameTable) -> Bool {
        left.key == right.key && left.alone == right.alone && left.withBelow == right.withBelow
            && left.below == right.below && left.exceptions == right.exceptions
    }
}
