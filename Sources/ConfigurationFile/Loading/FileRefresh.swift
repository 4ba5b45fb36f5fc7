import Configuration

/// Why a file that has changed is not taken up: what is wrong, and under which key.
package struct FileRefreshProblem: Error, Equatable, CustomStringConvertible {
    package var description: String
}

/// A configuration with files as they are now.
package struct RefreshedConfiguration {
    package var snapshot: ConfigurationSnapshot
    /// What is probably not meant, a line each.
    package var warnings: [String]
}

extension ConfigurationSnapshot {
    /// The absolute paths of the files that are taken up when they change, each once.
    package var watchedFiles: [String] {
        var paths: [String] = []
        for tls in [tls] + hosts.entries.map(\.tls) {
            for path in tls.watchedFiles where !paths.contains(path) { paths.append(path) }
        }
        return paths
    }

    /// The same configuration with the watched files as they are now. The configuration's own file
    /// is not read.
    ///
    /// - Parameter now: seconds since 1970.
    /// - Throws: for the first file that cannot be used.
    package func refreshed(at now: Int64) throws(FileRefreshProblem) -> RefreshedConfiguration {
        var files = FileRefresh(now: now)
        var next = self
        next.tls = try files.refreshed(tls, "tls")
        var entries = hosts.entries
        for index in entries.indices {
            entries[index].tls = try files.refreshed(entries[index].tls, "hosts[\(index)].tls")
        }
        // Making the index anew is worth it only for what is another.
        if entries != hosts.entries { next.hosts = HostTable(entries: entries) }
        return RefreshedConfiguration(snapshot: next, warnings: files.warnings)
    }
}

extension UpstreamTLS {
    fileprivate var watchedFiles: [String] {
        var paths: [String] = []
        if let clientIdentity { paths += [clientIdentity.path, clientIdentity.keyPath] }
        paths += crls.map(\.path)
        return paths
    }
}

/// Reads files again, each once.
private struct FileRefresh {
    let now: Int64
    private(set) var warnings: [String] = []
    private var contents: [String: [UInt8]] = [:]
    private var lists: [String: CRLFile] = [:]

    init(now: Int64) { self.now = now }

    /// - Parameter key: the path of the section, for what is told.
    mutating func refreshed(
        _ tls: UpstreamTLS, _ key: String
    ) throws(FileRefreshProblem) -> UpstreamTLS {
        var tls = tls
        if let identity = tls.clientIdentity {
            tls.clientIdentity = try refreshed(identity, "\(key).clientCertificate")
        }
        for index in tls.crls.indices {
            tls.crls[index] = try refreshed(tls.crls[index], "\(key).crls[\(index)]")
        }
        return tls
    }

    private mutating func refreshed(
        _ identity: ClientIdentity, _ key: String
    ) throws(FileRefreshProblem) -> ClientIdentity {
        let next = ClientIdentity(
            path: identity.path, chain: try read(identity.path, key), keyPath: identity.keyPath,
            key: try read(identity.keyPath, key))
        guard next != identity else { return identity }
        switch ClientIdentityReview(next, at: now) {
        case .usable(let found):
            for text in found { warnings.append("\(key): \(text)") }
            return next
        case .unusable(let problem, let expected, isOfKey: _):
            throw FileRefreshProblem(description: "\(key): \(problem); expected \(expected)")
        }
    }

    private mutating func refreshed(
        _ file: CRLFile, _ key: String
    ) throws(FileRefreshProblem) -> CRLFile {
        if let known = lists[file.path] { return known }
        let bytes = try read(file.path, key)
        do throws(CRLFileProblem) {
            let (next, found) = try CRLFile.read(bytes, path: file.path, at: now)
            lists[file.path] = next
            if next != file { for text in found { warnings.append("\(key): \(text)") } }
            return next
        } catch {
            throw FileRefreshProblem(description: "\(key): \(error.text)")
        }
    }

    private mutating func read(
        _ path: String, _ key: String
    ) throws(FileRefreshProblem) -> [UInt8] {
        if let known = contents[path] { return known }
        do throws(Files.Problem) {
            let read = try Files.read(path)
            contents[path] = read
            return read
        } catch {
            throw FileRefreshProblem(description: "\(key): \(quoted(path)) \(error.text)")
        }
    }
}
