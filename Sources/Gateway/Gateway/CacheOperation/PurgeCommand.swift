import CachePolicy
import CacheStore
import Documents
import HTTPCore
import PinfoldEngine

/// What an operator wants purged: the content of `POST /api/v1/cache/purge`.
struct PurgeCommand: Sendable, Equatable {
    /// The most URLs, prefixes, hosts and tags in all.
    static let maximumTargets = 1000

    var urls: [String] = []
    var prefixes: [String] = []
    var hosts: [String] = []
    var tags: [String] = []
    var everything = false
    var isSoft = false
    var isDryRun = false

    /// Why there is nothing to purge.
    struct PurgeCommandError: Error, Equatable {
        /// What is wrong, and what would be right.
        var detail: String
    }

    /// Reads the content of a request.
    init(_ content: [UInt8]) throws(PurgeCommandError) {
        let value: DocumentValue
        do throws(DocumentError) {
            value = try JSONDocument.value(of: content)
        } catch {
            throw PurgeCommandError(detail: "the content is not valid JSON: \(error)")
        }
        guard case .dictionary(let members) = value else {
            throw PurgeCommandError(detail: "the content is not a JSON object")
        }
        for member in members.members {
            switch member.key {
            case "urls": urls = try Self.texts(member)
            case "prefixes": prefixes = try Self.texts(member)
            case "hosts": hosts = try Self.texts(member)
            case "tags": tags = try Self.texts(member)
            case "everything": everything = try Self.flag(member)
            case "soft": isSoft = try Self.flag(member)
            case "dryRun": isDryRun = try Self.flag(member)
            default:
                throw PurgeCommandError(
                    detail: "unknown member \(member.key); expected urls, prefixes, hosts, tags, "
                        + "everything, soft or dryRun")
            }
        }
        let count = urls.count + prefixes.count + hosts.count + tags.count
        guard count > 0 || everything else {
            throw PurgeCommandError(
                detail: "nothing to purge; expected urls, prefixes, hosts, tags or everything")
        }
        guard count <= Self.maximumTargets else {
            throw PurgeCommandError(
                detail: "at most \(Self.maximumTargets) URLs, prefixes, hosts and tags may be "
                    + "purged at once")
        }
    }

    private static func texts(
        _ member: DocumentDictionary.Member
    ) throws(PurgeCommandError) -> [String] {
        guard case .array(let values) = member.value else {
            throw PurgeCommandError(detail: "\(member.key) is no list of strings")
        }
        var texts: [String] = []
        for value in values {
            guard case .string(let text) = value, !text.isEmpty else {
                throw PurgeCommandError(detail: "\(member.key) is no list of nonempty strings")
            }
            texts.append(text)
        }
        return texts
    }

    private static func flag(
        _ member: DocumentDictionary.Member
    ) throws(PurgeCommandError) -> Bool {
        guard case .boolean(let flag) = member.value else {
            throw PurgeCommandError(detail: "\(member.key) is neither true nor false")
        }
        return flag
    }

    /// What is purged in the store.
    func order(under policy: PolicySnapshot) throws(PurgeCommandError) -> PurgeOrder {
        var scopes: [Purge.Scope] = everything ? [.everything] : []
        if !urls.isEmpty {
            var keys: [CacheKey] = []
            for url in urls { keys += try Self.cached(url, policy).keys(under: policy) }
            // Each has many keys: those of all kinds of routes.
            for start in stride(from: 0, to: keys.count, by: Purge.maximumKeys) {
                let end = min(start + Purge.maximumKeys, keys.count)
                scopes.append(.keys(Array(keys[start..<end])))
            }
        }
        for prefix in prefixes {
            scopes += try Self.cached(prefix, isPrefix: true, policy).uris.map { .prefix($0) }
        }
        for host in hosts {
            do throws(PurgeHostError) {
                scopes.append(.host(try PurgeHost(host)))
            } catch {
                throw PurgeCommandError(
                    detail: "\(host) is no host; expected example.com, *.example.com or "
                        + "**.example.com, with a port if only that is meant")
            }
        }
        for tag in tags {
            guard tag.utf8.count <= 1024 else {
                throw PurgeCommandError(detail: "a tag has more than 1024 bytes")
            }
            scopes.append(.tag(Array(tag.utf8)))
        }
        return PurgeOrder(scopes: scopes, isSoft: isSoft, isDryRun: isDryRun)
    }

    private static func cached(
        _ url: String, isPrefix: Bool = false, _ policy: PolicySnapshot
    ) throws(PurgeCommandError) -> CachedURL {
        do throws(WireError) {
            return try CachedURL(url, isPrefix: isPrefix, under: policy)
        } catch {
            throw PurgeCommandError(
                detail: "\(url) is no URL; expected http://HOST/PATH or https://HOST/PATH")
        }
    }
}
