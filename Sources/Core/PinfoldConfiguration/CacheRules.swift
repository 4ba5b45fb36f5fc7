import CachePolicy
import HTTPCore

/// What an entry of `hosts`, or one of its `paths`, says about the cache. Where it says nothing
/// (`nil`), a path has what its entry says, and an entry has the default.
package struct CacheRules: Sendable, Equatable {
    /// Whether responses may be stored, and requests be answered with what is.
    package var stores: Bool?
    package var key = KeyRules()
    /// Whether what is being stored is received to its end if its client leaves.
    package var fill: CacheFill?
    /// Bytes of the slices in which responses are requested and stored.
    package var sliceBytes: Int?
    package var freshness = FreshnessRules()
    package var setCookie: SetCookieRule?
    /// How long after it has become stale a response may be served in place of a server error, or
    /// of none, if neither side says how long (RFC 5861 §4), in seconds.
    package var staleIfErrorSeconds: Int64?
    /// The same if the server cannot be reached or breaks off, and for its errors as well.
    package var staleWhenUnreachableSeconds: Int64?
    package var bypass = BypassConditions()
    /// Whether requests are answered with what is stored, however old, and never sent on.
    package var isOffline: Bool?
    /// The media types whose responses are compressed for clients that take that.
    package var compress: [MediaTypePattern]?
    /// Response fields, as they are written, that hold the tags by which responses are purged.
    package var tagFields: [String]?
    /// Whether clients get these fields.
    package var passesTags: Bool?
    /// Response fields, as they are written, that are meant for this cache in place of
    /// Cache-Control (RFC 9213): the first one that a response has counts.
    package var targetedFields: [String]?

    /// Creates rules that say nothing.
    package init() {}

    /// What an entry of `hosts` says if nothing is written.
    package static let ofEntry = {
        var rules = CacheRules()
        rules.stores = true
        rules.key.fields = []
        return rules
    }()

    /// The fields that hold tags where nothing is said.
    package static let defaultTagFields = ["Surrogate-Key", "Cache-Tag", "Cache-Groups"]

    /// These rules, with those of an entry where they say nothing.
    package func over(_ entry: CacheRules) -> CacheRules {
        var rules = self
        rules.stores = stores ?? entry.stores
        rules.key = key.over(entry.key)
        rules.fill = fill ?? entry.fill
        rules.sliceBytes = sliceBytes ?? entry.sliceBytes
        rules.freshness = freshness.over(entry.freshness)
        rules.setCookie = setCookie ?? entry.setCookie
        rules.staleIfErrorSeconds = staleIfErrorSeconds ?? entry.staleIfErrorSeconds
        rules.staleWhenUnreachableSeconds =
            staleWhenUnreachableSeconds ?? entry.staleWhenUnreachableSeconds
        rules.bypass = bypass.over(entry.bypass)
        rules.isOffline = isOffline ?? entry.isOffline
        rules.compress = compress ?? entry.compress
        rules.tagFields = tagFields ?? entry.tagFields
        rules.passesTags = passesTags ?? entry.passesTags
        rules.targetedFields = targetedFields ?? entry.targetedFields
        return rules
    }
}

/// What becomes of responses that set cookies.
package enum SetCookieRule: String, Sendable, CaseIterable {
    /// They are stored if they state that they are meant for shared caches: by `public` or
    /// `s-maxage`.
    case explicit
    /// They are not stored.
    case never
    /// They are stored without the cookies, which only the client gets whose request it was.
    case strip
    /// They are stored like any other (RFC 9111 §7.3): each client gets the cookies of the one
    /// whose request it was.
    case always
}

/// What an entry of `hosts` says about some paths: the first one that matches counts.
package struct PathRule: Sendable, Equatable {
    /// The patterns, at least one of which matches the path.
    package var match: [PathPattern] = []
    package var cache = CacheRules()

    /// Creates a rule for no path.
    package init() {}

    /// How it is named in texts: by its first pattern.
    package var label: String { match.first?.description ?? "" }
}

/// A media type, or all subtypes of a type: `text/html`, `text/*`.
package struct MediaTypePattern: Sendable, Hashable, CustomStringConvertible {
    /// In lower case.
    package let type: String
    /// In lower case; `nil` for all of them.
    package let subtype: String?

    /// `nil` if the text is not one.
    package init?(_ text: String) {
        let parts = text.lowercasedASCII.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2, text.utf8.count <= 127,
            parts.allSatisfy({ !$0.isEmpty && $0.utf8.allSatisfy(ByteClass.isToken) }),
            !parts[0].utf8.contains(UInt8(ascii: "*")),
            parts[1] == "*" || !parts[1].utf8.contains(UInt8(ascii: "*"))
        else { return nil }
        type = String(parts[0])
        subtype = parts[1] == "*" ? nil : String(parts[1])
    }

    /// In lower case: `text/html`, `text/*`.
    package var description: String { "\(type)/\(subtype ?? "*")" }
}
