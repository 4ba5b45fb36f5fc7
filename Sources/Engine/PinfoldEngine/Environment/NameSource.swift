import HTTPCore
import PinfoldResolver

/// Knows addresses of some names, before the resolver is asked.
package protocol NameSource: Sendable {
    /// Looks a name up for a connection to a port.
    ///
    /// - Parameters:
    ///   - host: in lower case, or an address without brackets.
    ///   - later: called once, on any thread, if the answer is ``NameAnswer/later(cancel:)``.
    func lookUp(
        host: String, port: UInt16, later: @escaping @Sendable (ResolveResult) -> Void
    ) -> NameAnswer
}

/// What a source of names answers.
package enum NameAnswer: Sendable {
    /// The resolver is to be asked.
    case unknown
    /// These are its addresses; none: it has none.
    case addresses([IPAddress])
    /// It is being looked up, until the answer comes or is not wanted any more.
    case later(cancel: @Sendable () -> Void)
}
