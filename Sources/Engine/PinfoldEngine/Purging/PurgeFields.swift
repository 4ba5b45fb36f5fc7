import CacheStore
import HTTPCore

/// What the fields of a request with PURGE ask for.
struct PurgeFields: Equatable {
    /// The tags; empty if the URL is purged.
    private(set) var tags: [[UInt8]] = []
    /// Whether tags were sent as `Cache-Groups`, which are those of an origin (RFC 9875 §2).
    private(set) var groups: [[UInt8]] = []
    private(set) var isSoft = false
    private(set) var isDryRun = false

    /// The most tags of one request, and the most bytes of one.
    static let maximumTags = 256
    static let maximumTagBytes = 1024

    /// Reads the fields of a request.
    init(of request: borrowing RequestHead, in bytes: Span<UInt8>) throws(PurgeRequestError) {
        for line in request.fields where line.id == .other {
            let name = bytes.extracting(line.name.indices)
            let value = bytes.extracting(line.value.indices)
            if name.equals(lowercase: "surrogate-key") {
                try add(Self.members(of: value, apartBy: 0x20), "Surrogate-Key")
            } else if name.equals(lowercase: "cache-tag") {
                try add(Self.members(of: value, apartBy: UInt8(ascii: ",")), "Cache-Tag")
            } else if name.equals(lowercase: "cache-groups") {
                try addGroups(value)
            } else if name.equals(lowercase: "soft-purge") {
                isSoft = try Self.flag(value, "Soft-Purge")
            } else if name.equals(lowercase: "fastly-soft-purge") {
                isSoft = try Self.flag(value, "Fastly-Soft-Purge")
            } else if name.equals(lowercase: "purge-dry-run") {
                isDryRun = try Self.flag(value, "Purge-Dry-Run")
            }
        }
    }

    private mutating func add(_ members: [[UInt8]], _ field: String) throws(PurgeRequestError) {
        try check(members, field)
        tags += members
        guard tags.count + groups.count <= Self.maximumTags else { throw Self.tooMany(field) }
    }

    private func check(_ members: [[UInt8]], _ field: String) throws(PurgeRequestError) {
        let isValid = members.allSatisfy { $0.count <= Self.maximumTagBytes }
        // A field without a tag must not become a purge of the URL.
        guard isValid, !members.isEmpty else {
            throw .malformed(
                field: field,
                expected: "at least one tag, each of at most \(Self.maximumTagBytes) bytes")
        }
    }

    private static func tooMany(_ field: String) -> PurgeRequestError {
        .malformed(field: field, expected: "at most \(maximumTags) tags in one request")
    }

    /// A list of strings (RFC 9875 §2, RFC 9651 §3.1).
    private mutating func addGroups(_ value: Span<UInt8>) throws(PurgeRequestError) {
        guard let members = CacheGroups.members(of: value) else {
            throw .malformed(
                field: "Cache-Groups", expected: "a list of strings: \"one\", \"another\"")
        }
        try check(members, "Cache-Groups")
        groups += members
        guard tags.count + groups.count <= Self.maximumTags else {
            throw Self.tooMany("Cache-Groups")
        }
    }

    /// The nonempty members, without white space around them.
    private static func members(of value: Span<UInt8>, apartBy separator: UInt8) -> [[UInt8]] {
        var members: [[UInt8]] = []
        var member: [UInt8] = []
        for index in 0...value.count {
            let byte = index < value.count ? value[index] : separator
            let isBlank = byte == 0x20 || byte == 0x09
            if byte == separator || isBlank && separator == 0x20 {
                while let last = member.last, last == 0x20 || last == 0x09 { member.removeLast() }
                if !member.isEmpty { members.append(member) }
                member = []
            } else if !(isBlank && member.isEmpty) {
                member.append(byte)
            }
        }
        return members
    }

    private static func flag(_ value: Span<UInt8>, _ field: String) throws(PurgeRequestError)
        -> Bool
    {
        if value.equals("1") || value.equals("?1") || value.equals(lowercase: "true") {
            return true
        }
        if value.equals("0") || value.equals("?0") || value.equals(lowercase: "false") {
            return false
        }
        throw .malformed(field: field, expected: "1 or 0")
    }
}

/// The members of a Cache-Groups field.
enum CacheGroups {
    /// The strings of a list without parameters that matter; `nil` if it is no such list.
    static func members(of value: Span<UInt8>) -> [[UInt8]]? {
        var members: [[UInt8]] = []
        var position = 0
        func skipBlanks() {
            while position < value.count, value[position] == 0x20 || value[position] == 0x09 {
                position += 1
            }
        }
        skipBlanks()
        while position < value.count {
            guard value[position] == UInt8(ascii: "\"") else { return nil }
            position += 1
            var member: [UInt8] = []
            while position < value.count, value[position] != UInt8(ascii: "\"") {
                if value[position] == UInt8(ascii: "\\") {
                    position += 1
                    guard position < value.count,
                        value[position] == UInt8(ascii: "\"")
                            || value[position] == UInt8(ascii: "\\")
                    else { return nil }
                }
                guard 0x20...0x7E ~= value[position] else { return nil }
                member.append(value[position])
                position += 1
            }
            guard position < value.count else { return nil }
            position += 1
            members.append(member)
            skipBlanks()
            guard position < value.count else { break }
            guard value[position] == UInt8(ascii: ",") else { return nil }
            position += 1
            skipBlanks()
            // RFC 9651 §4.2.1: no comma at the end.
            guard position < value.count else { return nil }
        }
        return members
    }
}
