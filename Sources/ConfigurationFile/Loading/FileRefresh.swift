import Configuration

/// Why files that have changed are not taken up: what is wrong, and under which key.
package struct FileRefreshProblem: Error, Equatable, CustomStringConvertible {
    /// The files' absolute paths.
    package var paths: [String]
    package var description: String
}

/// A configuration with files as they are now.
package struct RefreshedConfiguration {
    /// With what was in force before in the place of what cannot be used.
    package var snapshot: ConfigurationSnapshot
    /// What is probably not meant, a line each.
    package var warnings: [String]
    /// What cannot be used.
    package var problems: [FileRefreshProblem]
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

    /// The same configuration with watched files as they are now, each as far as it can be used.
    /// The configuration's own file is not read.
    ///
    /// - Parameters:
    ///   - paths: the files that may have changed, as ``watchedFiles`` has them.
    ///   - now: seconds since 1970.
    package func refreshed(reading paths: [String], at now: Int64) -> RefreshedConfiguration {
        var files = FileRefresh(paths: Set(paths), now: now)
        var next = self
        next.tls = files.refreshed(tls, "tls")
        var entries = hosts.entries
        for index in entries.indices {
            entries[index].tls = files.refreshed(entries[index].tls, "hosts[\(index)].tls")
        }
        // Making the index anew is worth it only for what is another.
        if entries != hosts.entries { next.hosts = HostTable(entries: entries) }
        return RefreshedConfiguration(
            snapshot: next, warnings: files.warnings, problems: files.problems)
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
    /// Those that may have changed.
    let paths: Set<String>
    let now: Int64
    private(set) var warnings: [String] = []
    private(set) var problems: [FileRefreshProblem] = []
    private var contents: [String: [UInt8]] = [:]
    /// nil: what is in force stays.
    private var lists: [String: CRLFile?] = [:]

    init(paths: Set<String>, now: Int64) {
        self.paths = paths
        self.now = now
    }

    /// - Parameter key: the path of the section, for what is told.
    mutating func refreshed(_ tls: UpstreamTLS, _ key: String) -> UpstreamTLS {
        var tls = tls
        if let identity = tls.clientIdentity,
            paths.contains(identity.path) || paths.contains(identity.keyPath)
        {
            do throws(FileRefreshProblem) {
                tls.clientIdentity = try refreshed(identity, "\(key).clientCertificate")
            } catch {
                problems.append(error)
            }
        }
        for index in tls.crls.indices where paths.contains(tls.crls[index].path) {
            let file = tls.crls[index]
            if let known = lists[file.path] {
                tls.crls[index] = known ?? file
                continue
            }
            do throws(FileRefreshProblem) {
                tls.crls[index] = try refreshed(file, "\(key).crls[\(index)]")
                lists[file.path] = .some(tls.crls[index])
            } catch {
                problems.append(error)
                lists[file.path] = .some(nil)
            }
        }
        return tls
    }

    private mutating func refreshed(
        _ identity: ClientIdentity, _ key: String
    ) throws(FileRefreshProblem) -> ClientIdentity {
        let paths = [identity.path, identity.keyPath]
        let next = ClientIdentity(
            path: identity.path, chain: try read(identity.path, key, of: paths),
            keyPath: identity.keyPath, key: try read(identity.keyPath, key, of: paths))
        guard next != identity else { return identity }
        switch ClientIdentityReview(next, at: now) {
        case .usable(let found):
            for text in found { warnings.append("\(key): \(text)") }
            return next
        case .unusable(let problem, let expected, isOfKey: _):
            throw FileRefreshProblem(
                paths: paths, description: "\(key): \(problem); expected \(expected)")
        }
    }

    private mutating func refreshed(
        _ file: CRLFile, _ key: String
    ) throws(FileRefreshProblem) -> CRLFile {
        let bytes = try read(file.path, key, of: [file.path])
        do throws(CRLFileProblem) {
            let (read, found) = try CRLFile.read(bytes, path: file.path, at: now)
            guard read != file else { return file }
            let (next, kept) = read.keepingNewer(of: file)
            for text in found + kept { warnings.append("\(key): \(text)") }
            return next
        } catch {
            throw FileRefreshProblem(
                paths: [file.path], description: "\(key): \(error.text)")
        }
    }

    /// - Parameter paths: the files that are of no use without this one.
    private mutating func read(
        _ path: String, _ key: String, of paths: [String]
    ) throws(FileRefreshProblem) -> [UInt8] {
        if let known = contents[path] { return known }
        do throws(Files.Problem) {
            let read = try Files.read(path)
            contents[path] = read
            return read
        } catch {
            throw FileRefreshProblem(
                paths: paths, description: "\(key): \(quoted(path)) \(error.text)")
        }
    }
}
