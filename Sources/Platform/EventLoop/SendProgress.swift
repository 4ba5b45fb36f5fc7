/// What the kernel knows of how far a socket's bytes have got.
package struct Delivery: Equatable, Sendable {
    /// Bytes that the peer has acknowledged in all.
    package var acknowledgedBytes: UInt64
    /// How long ago the peer acknowledged anything last, be it nothing new: who does not read
    /// answers the kernel's probes.
    package var ageMilliseconds: Int64

    package init(acknowledgedBytes: UInt64, ageMilliseconds: Int64) {
        self.acknowledgedBytes = acknowledgedBytes
        self.ageMilliseconds = ageMilliseconds
    }
}

/// When a peer took something for the last time, as far as looking now and then tells.
///
/// A socket is reported writable when a third of its buffer, which may be megabytes, is free again:
/// a peer that reads steadily can be slower than that for longer than a time-out.
package struct SendProgress {
    private var acknowledgedBytes = UInt64.max
    private var lookedAt: Int64 = 0

    package init() {}

    /// The latest time at which the peer can have taken something since the previous look, in the
    /// loop's milliseconds; nil: it has taken nothing. At the first look nothing is known, which
    /// counts as something.
    package mutating func look(_ delivery: Delivery?, at now: Int64) -> Int64? {
        guard let delivery else { return nil }
        defer { lookedAt = now }
        guard delivery.acknowledgedBytes != acknowledgedBytes else { return nil }
        acknowledgedBytes = delivery.acknowledgedBytes
        return max(lookedAt, now - delivery.ageMilliseconds)
    }
}

/// A time-out for want of progress that ends after once its time, and at most a quarter more.
///
///     noted ──► looked at every quarter: noted again, as progress is seen ──► the whole time: over
///
/// Noting costs a store. Progress that only the kernel sees (`SendProgress`) is known to the
/// quarter in which it happened.
package struct IdleTime {
    private var last: Int64 = 0

    package init() {}

    /// There was progress at this time, in the loop's milliseconds.
    @inline(__always)
    package mutating func note(at time: Int64) { if time > last { last = time } }

    /// How much is left of so many milliseconds; nil: nothing.
    package func remaining(of milliseconds: Int64, at now: Int64) -> Int64? {
        let left = last + milliseconds - now
        return left > 0 ? left : nil
    }

    /// After how long to look again, or for the first time; nil: the time is over.
    package func nextLook(of milliseconds: Int64, at now: Int64) -> Int64? {
        remaining(of: milliseconds, at: now).map { min($0, Self.firstLook(of: milliseconds)) }
    }

    /// How long after progress is looked first.
    package static func firstLook(of milliseconds: Int64) -> Int64 { max(1, milliseconds / 4) }
}
