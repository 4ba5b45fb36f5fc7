import Authentication
import PinfoldConfiguration
import Trust

/// Why changed files cannot be used: what is wrong, and the key that names them.
package struct FileRefreshError: Error, Equatable, CustomStringConvertible {
    /// The files' absolute paths: one of ``ConfigurationSnapshot/watchedFiles``.
    package var paths: [String]
    /// The error as `check` would print it, without the line in the configuration file.
    package var description: String
}

/// A configuration with the current content of its watched files.
package struct RefreshedConfiguration {
    /// The configuration. Where new content cannot be used, it has the previous content.
    package var snapshot: ConfigurationSnapshot
    /// Warnings about the new content, one line each.
    package var warnings: [String]
    /// Errors in the new content.
    package var problems: [FileRefreshError]
    /// The files whose content is older than the one in use, which stays in use.
    package var outdated: Set<String>
}

extension ConfigurationSnapshot {
    /// The absolute paths of the files that are reloaded when they change. Files that are usable
    /// only together form a set; each set is listed once.
    package var watchedFiles: [[String]] {
        var sets: [[String]] = []
        var known: Set<[String]> = []
        let named =
            [authentication.watchedFiles, tls.watchedFiles]
            + hosts.entries.map { $0.tls.watchedFiles + $0.ruleFiles }
            + [access.lists.map(\.files)]
            + [parents.compactMap { $0.passwordSource?.path.map { [$0] } }]
            + [(cache.purge?.token).map { [[$0.path]] } ?? []]
        for set in named.joined() where known.insert(set).inserted { sets.append(set) }
        return sets
    }

    /// The same configuration with the current content of its watched files, where usable. The
    /// configuration file itself is not read.
    ///
    /// - Parameters:
    ///   - paths: The files that may have changed, from ``watchedFiles``.
    ///   - now: The current time, in seconds since 1970.
    package func refreshed(reading paths: [String], at now: Int64) -> RefreshedConfiguration {
        var files = FileRefresh(paths: Set(paths), now: now)
        var next = self
        next.tls = files.refreshed(tls, "tls")
        next.access.lists = access.lists.map { files.refreshed($0, "access.lists.\($0.name)") }
        files.refresh(&next.authentication)
        for index in parents.indices { files.refreshPassword(of: &next.parents[index]) }
        files.refresh(&next.cache.purge, "cache.purge.tokenFile")
        var entries = hosts.entries
        files.hasReplaced = false
        for index in entries.indices {
            entries[index].tls = files.refreshed(entries[index].tls, "hosts[\(index)].tls")
            files.refreshRules(of: &entries[index], "hosts[\(index)]")
        }
        // Rebuild the index only if an entry has changed.
        if files.hasReplaced { next.hosts = hosts.replacing(entries) }
        return RefreshedConfiguration(
            snapshot: next, warnings: files.warnings.map(variables.concealed(in:)),
            problems: files.problems.map { problem in
                FileRefreshError(
                    paths: problem.paths,
                    description: variables.concealed(in: problem.description))
            }, outdated: files.outdated)
    }
}

extension ClientIdentity {
    /// The identity's files, each once.
    fileprivate var paths: [String] { path == keyPath ? [path] : [path, keyPath] }
}

extension AuthenticationConfiguration {
    fileprivate var watchedFiles: [[String]] {
        [users?.path, groups?.path, tokens?.path, signedTokens?.keys?.path].compactMap {
            $0.map { [$0] }
        }
    }
}

extension UpstreamTLS {
    fileprivate var watchedFiles: [[String]] {
        var sets: [[String]] = []
        if let clientIdentity { sets.append(clientIdentity.paths) }
        sets += crls.map { [$0.path] }
        if let list = transparency.list { sets.append([list.path]) }
        return sets
    }
}

extension HostEntry {
    /// The files named by the rules for requests and responses.
    fileprivate var ruleFiles: [[String]] {
        [request.authorization?.scheme.source.path, response.schema?.path].compactMap {
            $0.map { [$0] }
        }
    }
}

extension SecretSource {
    /// The path, or `nil` if the secret is not in a file.
    fileprivate var path: String? {
        if case .file(let path) = self { path } else { nil }
    }
}

/// Rereads files, each once.
struct FileRefresh {
    /// The files that may have changed.
    let paths: Set<String>
    let now: Int64
    private(set) var warnings: [String] = []
    var problems: [FileRefreshError] = []
    private(set) var outdated: Set<String> = []
    /// Whether anything has changed.
    var hasReplaced = false
    private var contents: [String: [UInt8]] = [:]
    /// CRL files by path, or `nil` where the current list stays in use.
    private var lists: [String: CRLFile?] = [:]
    /// Log lists by path, or `nil` where a file cannot be used.
    private var logLists: [String: TransparencyLogList?] = [:]
    /// Messages about log lists that were already recorded, since entries often share a list.
    private var reportedMessages: Set<String> = []

    init(paths: Set<String>, now: Int64) {
        self.paths = paths
        self.now = now
    }

    /// - Parameter key: The path of the section, for messages.
    mutating func refreshed(_ tls: UpstreamTLS, _ key: String) -> UpstreamTLS {
        var tls = tls
        if let identity = tls.clientIdentity, !paths.isDisjoint(with: identity.paths) {
            do throws(FileRefreshError) {
                let next = try refreshed(identity, key)
                if next != identity { hasReplaced = true }
                tls.clientIdentity = next
            } catch {
                problems.append(error)
            }
        }
        for index in tls.crls.indices where paths.contains(tls.crls[index].path) {
            let file = tls.crls[index]
            let next = list(in: file, "\(key).crls[\(index)]") ?? file
            if next != file { hasReplaced = true }
            tls.crls[index] = next
        }
        refreshLogs(&tls.transparency, "\(key).certificateTransparency")
        return tls
    }

    // MARK: Users, groups and tokens

    mutating func refresh(_ authentication: inout AuthenticationConfiguration) {
        let former = authentication
        refresh(&authentication.users, former.users?.path, "users") {
            (path, content) throws(CredentialsFileError) in
            try UserFile(path: path, content: content)
        }
        refresh(&authentication.groups, former.groups?.path, "groups") {
            (path, content) throws(CredentialsFileError) in
            try GroupFile(path: path, content: content)
        }
        refresh(&authentication.tokens, former.tokens?.path, "tokens") {
            (path, content) throws(CredentialsFileError) in
            try TokenFile(path: path, content: content)
        }
        refreshKeys(of: &authentication.signedTokens)
        guard authentication != former else { return }
        for text in authentication.contentWarnings { warnings.append("authentication: \(text)") }
    }

    private mutating func refresh<File: Equatable>(
        _ file: inout File?, _ path: String?, _ key: String,
        _ reading: (String, [UInt8]) throws(CredentialsFileError) -> File
    ) {
        guard let path, paths.contains(path) else { return }
        take(into: &file) { files throws(FileRefreshError) in
            let content = try files.read(path, "authentication.\(key)", of: [path])
            do throws(CredentialsFileError) {
                return try reading(path, content)
            } catch {
                throw FileRefreshError(
                    paths: [path],
                    description: "authentication.\(key): \(error.text(ofFile: path)); expected "
                        + error.expected)
            }
        }
    }

    private mutating func refreshKeys(of section: inout SignedTokenConfiguration?) {
        guard let path = section?.keys?.path, paths.contains(path) else { return }
        let key = "authentication.jwt.keys"
        var keys = section?.keys
        take(into: &keys) { files throws(FileRefreshError) in
            let content = try files.read(path, key, of: [path])
            do throws(KeyFileError) {
                return try KeyFile(path: path, content: content)
            } catch {
                throw FileRefreshError(
                    paths: [path],
                    description: "\(key): \(error.text(ofFile: path)); expected \(error.expected)")
            }
        }
        section?.keys = keys
    }

    // MARK: Client certificates

    private mutating func refreshed(
        _ identity: ClientIdentity, _ section: String
    ) throws(FileRefreshError) -> ClientIdentity {
        let paths = identity.paths
        let place = "\(section).clientCertificate"
        let keyPlace = paths.count > 1 ? "\(section).clientKey" : place
        let next = ClientIdentity(
            path: identity.path, chain: try read(identity.path, place, of: paths),
            keyPath: identity.keyPath, key: try read(identity.keyPath, keyPlace, of: paths))
        guard next != identity else { return identity }
        switch ClientIdentityReview(next, at: now) {
        case .usable(let found):
            for text in found { warnings.append("\(place): \(text)") }
            return next
        case .unusable(let problem, let expected, let isOfKey):
            throw FileRefreshError(
                paths: paths,
                description: "\(isOfKey ? keyPlace : place): \(problem); expected \(expected)")
        }
    }

    // MARK: Parents

    mutating func refreshPassword(of parent: inout ParentConfiguration) {
        guard let user = parent.user, let source = parent.passwordSource, let path = source.path,
            paths.contains(path)
        else { return }
        let key = "parents.\(parent.name).passwordFile"
        do throws(FileRefreshError) {
            let content = try read(path, key, of: [path])
            do throws(SecretError) {
                _ = try RequestAuthorization(.basic(user: user, source), secret: content)
                parent.password = try SecretText(
                    password: content, of: source, for: parent.scheme)
            } catch {
                throw FileRefreshError(
                    paths: [path], description: "\(key): \(error.text); expected \(error.expected)")
            }
        } catch {
            problems.append(error)
        }
    }

    // MARK: Rules for requests and responses

    /// - Parameter key: The path of the entry, for messages.
    mutating func refreshRules(of entry: inout HostEntry, _ key: String) {
        if let authorization = entry.request.authorization,
            let path = authorization.scheme.source.path, paths.contains(path)
        {
            take(into: &entry.request.authorization) { files throws(FileRefreshError) in
                try files.refreshed(authorization, path, "\(key).request.authorization")
            }
        }
        if let schema = entry.response.schema, paths.contains(schema.path) {
            take(into: &entry.response.schema) { files throws(FileRefreshError) in
                try files.refreshed(schema, "\(key).response.schema")
            }
        }
    }

    /// Stores a value that was read, or keeps the current one if reading fails.
    private mutating func take<Value: Equatable>(
        into place: inout Value?,
        _ reading: (inout Self) throws(FileRefreshError) -> Value
    ) {
        do throws(FileRefreshError) {
            let next = try reading(&self)
            if next != place { hasReplaced = true }
            place = next
        } catch {
            problems.append(error)
        }
    }

    private mutating func refreshed(
        _ authorization: RequestAuthorization, _ path: String, _ key: String
    ) throws(FileRefreshError) -> RequestAuthorization {
        let content = try read(path, key, of: [path])
        do throws(SecretError) {
            var next = try RequestAuthorization(authorization.scheme, secret: content)
            next.allowsClearText = authorization.allowsClearText
            return next
        } catch {
            throw FileRefreshError(
                paths: [path], description: "\(key): \(error.text); expected \(error.expected)")
        }
    }

    private mutating func refreshed(
        _ schema: SchemaFile, _ key: String
    ) throws(FileRefreshError) -> SchemaFile {
        let text = try read(schema.path, key, of: [schema.path])
        do throws(SchemaFileError) {
            return try SchemaFile(checking: text, path: schema.path)
        } catch {
            throw FileRefreshError(
                paths: [schema.path],
                description: "\(key): \(error.text); expected \(SchemaFile.expected)")
        }
    }

    // MARK: Lists of domains

    /// Its files are read together: without one of them the list stays as it is.
    mutating func refreshed(_ list: AccessList, _ key: String) -> AccessList {
        guard !paths.isDisjoint(with: list.files), !list.isCurrent else { return list }
        do throws(AccessListError) {
            let next = try list.read()
            for warning in next.warnings {
                warnings.append("\(key).files[\(warning.file)]: \(warning.text)")
            }
            return next
        } catch {
            problems.append(
                FileRefreshError(
                    paths: list.files,
                    description: "\(key).files[\(error.file)]: \(error.text); expected "
                        + error.expected))
            return list
        }
    }

    // MARK: Revoked certificates

    /// The new list, or `nil` if the current one stays in use.
    private mutating func list(in file: CRLFile, _ key: String) -> CRLFile? {
        if let known = lists[file.path] { return known }
        var found: CRLFile?
        do throws(FileRefreshError) {
            found = try refreshed(file, key)
        } catch {
            problems.append(error)
        }
        lists[file.path] = .some(found)
        return found
    }

    private mutating func refreshed(
        _ file: CRLFile, _ key: String
    ) throws(FileRefreshError) -> CRLFile {
        let bytes = try read(file.path, key, of: [file.path])
        // What is in force need not be parsed again.
        if let lists = try? RevocationListFile.decode(bytes), lists == file.lists { return file }
        do throws(CRLFileError) {
            let (read, found) = try CRLFile.read(bytes, path: file.path, at: now)
            let (next, kept) = read.keepingNewer(of: file)
            if !kept.isEmpty { outdated.insert(file.path) }
            for text in found + kept { warnings.append("\(key): \(text)") }
            return next
        } catch {
            throw FileRefreshError(
                paths: [file.path],
                description: "\(key): \(error.text); expected \(CRLFile.expected)")
        }
    }

    // MARK: Lists of logs

    private mutating func refreshLogs(_ section: inout CertificateTransparency, _ key: String) {
        guard let file = section.list, paths.contains(file.path),
            let list = logList(of: file.path, "\(key).logs"), list != file.list
        else { return }
        if list.isOlder(than: file.list) {
            outdated.insert(file.path)
            return warnOnce(
                "\(quoted(path: file.path)) holds an older list than the one in use, which stays "
                    + "in use until the file has a newer one or the configuration is reloaded",
                "\(key).logs", of: file.path)
        }
        if let problem = list.shortage(of: section.minimumSCTs, at: now) {
            if reportedMessages.insert(file.path + problem).inserted {
                problems.append(
                    FileRefreshError(
                        paths: [file.path],
                        description: "\(key).minimumSCTs: \(problem); expected "
                            + TransparencyLogList.expectedMinimum))
            }
            return
        }
        for text in list.warnings(at: now) { warnOnce(text, "\(key).logs", of: file.path) }
        section.list = LogListFile(path: file.path, list: list)
        hasReplaced = true
    }

    private mutating func warnOnce(_ text: String, _ key: String, of path: String) {
        if reportedMessages.insert(path + text).inserted { warnings.append("\(key): \(text)") }
    }

    /// The list of a file, or `nil` if it cannot be used, which has been recorded.
    private mutating func logList(of path: String, _ key: String) -> TransparencyLogList? {
        if let known = logLists[path] { return known }
        var list: TransparencyLogList?
        do throws(FileRefreshError) {
            let bytes = try read(path, key, of: [path])
            do throws(LogListError) {
                list = try TransparencyLogList(file: bytes)
            } catch {
                throw FileRefreshError(
                    paths: [path], description: "\(key): \(error.text(ofFile: path))")
            }
        } catch {
            problems.append(error)
        }
        logLists[path] = .some(list)
        return list
    }

    /// - Parameter paths: The files that are unusable without this one.
    mutating func read(
        _ path: String, _ key: String, of paths: [String]
    ) throws(FileRefreshError) -> [UInt8] {
        if let known = contents[path] { return known }
        do throws(ConfigurationFiles.ReadError) {
            let read = try ConfigurationFiles.read(path)
            contents[path] = read
            return read
        } catch {
            throw FileRefreshError(
                paths: paths,
                description: "\(key): \(quoted(path: path)) \(error.text); expected a readable file"
            )
        }
    }
}
