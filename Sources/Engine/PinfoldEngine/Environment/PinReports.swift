import Locking
import Trust

/// Which servers report-only pinsets would have refused, so that each is told of once in a while
/// and not at every handshake; all of them are counted.
///
/// Lock: one mutex, held for one dictionary operation per handshake that is reported.
package final class PinReports: Sendable {
    /// What is told apart.
    package struct Subject: Hashable, Sendable {
        /// As it is in force: after a reload that changes it, it is another one.
        package var pinset: Pinset
        package var host: String
        package var port: UInt16

        package init(pinset: Pinset, host: String, port: UInt16) {
            self.pinset = pinset
            self.host = host
            self.port = port
        }

        /// Without the pins: the name is enough to spread what is asked for at each handshake.
        package func hash(into hasher: inout Hasher) {
            hasher.combine(pinset.name)
            hasher.combine(host)
            hasher.combine(port)
        }

        /// Whether the other one's pinset is an earlier or later one of the same name.
        fileprivate func isOtherVersion(of other: Subject) -> Bool {
            pinset.name == other.pinset.name && pinset != other.pinset
        }
    }

    private struct Log {
        /// When it was told of last, in seconds.
        var at: Int64
        /// How often it happened since.
        var repeats: UInt64
    }

    /// Between two lines about one subject, in seconds.
    package static let periodSeconds: Int64 = 3600
    /// Subjects that are told apart at a time; of further ones none is told of, so that lines are
    /// bounded, too. Those of a pinset as it was before a reload make room for it as it is.
    package static let capacity = 1024

    private let logged = Locked<[Subject: Log]>([:])

    package init() {}

    /// Notes that a server was let pass.
    ///
    /// - Parameter now: seconds of a clock that never goes back.
    /// - Returns: how often it happened without being told since the last time; nil: it is not to
    ///   be told of now.
    package func note(_ subject: Subject, now: Int64) -> UInt64? {
        logged.withLock { logged in
            if let last = logged[subject], now - last.at < Self.periodSeconds {
                logged[subject]?.repeats += 1
                return nil
            }
            let repeats = logged[subject]?.repeats ?? 0
            if logged[subject] == nil, logged.count >= Self.capacity {
                logged = logged.filter {
                    now - $0.value.at < Self.periodSeconds && !$0.key.isOtherVersion(of: subject)
                }
                guard logged.count < Self.capacity else { return nil }
            }
            logged[subject] = Log(at: now, repeats: 0)
            return repeats
        }
    }
}
