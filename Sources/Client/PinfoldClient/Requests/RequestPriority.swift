import HTTPTypes

/// The priority of a request, in the terms of RFC 9218: among the queued requests of its session,
/// and of its response among those that a server sends on the same connection.
///
///     options.priority = RequestPriority(urgency: 2, isIncremental: true)
public struct RequestPriority: Sendable, Hashable {
    /// How urgent the request is, from 0, which comes first, to 7. It is 3 for most requests; 7 is
    /// for what could as well be done later.
    public let urgency: Int
    /// Whether the response is of use while it arrives. A server sends such responses of the same
    /// urgency side by side, and others one after the other.
    public let isIncremental: Bool

    /// Started after ``normal``.
    public static let low = RequestPriority(urgency: 5)
    /// That of most requests, of which servers are not told.
    public static let normal = RequestPriority(urgency: 3)
    /// Started before ``normal``.
    public static let high = RequestPriority(urgency: 1)

    /// The possible urgencies.
    package static let urgencies = 0...7

    /// - Parameters:
    ///   - urgency: From 0 to 7; the nearest of these for other numbers.
    ///   - isIncremental: Whether the response is of use while it arrives.
    public init(urgency: Int, isIncremental: Bool = false) {
        self.urgency = min(max(urgency, Self.urgencies.lowerBound), Self.urgencies.upperBound)
        self.isIncremental = isIncremental
    }

    /// The value of the Priority field, or `nil` for what a server takes for granted (RFC 9218
    /// section 4).
    private var fieldValue: String? {
        let urgency = urgency == Self.normal.urgency ? [] : ["u=\(urgency)"]
        let members = urgency + (isIncremental ? ["i"] : [])
        return members.isEmpty ? nil : members.joined(separator: ", ")
    }

    /// Adds the Priority field, unless there is one.
    func apply(to fields: inout HTTPFields) {
        guard let fieldValue, !fields.contains(.priority) else { return }
        fields[.priority] = fieldValue
    }
}
