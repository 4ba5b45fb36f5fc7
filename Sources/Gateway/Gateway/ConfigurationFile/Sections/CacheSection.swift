import PinfoldConfiguration

/// `cache`.
extension CacheConfiguration {
    static var table: KeyTable<Self> {
        let most = 1 << 50
        return KeyTable(
            keys: [
                .boolean("enabled", \.isEnabled),
                ConfigurationKey(
                    "memory", \.memoryBytes, byDefault: "auto",
                    reading: { reader, field in field.bytesOrAutomatic(in: 0...most) },
                    text: Quantity.text(bytes:)),
                ConfigurationKey(
                    "disk", \.diskBytes, reading: { $1.diskBytes(most: most) },
                    text: Quantity.text(bytes:)),
                ConfigurationKey(
                    "entries", byDefault: "auto",
                    read: { _, field, cache in
                        cache.diskEntries =
                            field?.diskEntries()
                            ?? automaticEntries(diskBytes: cache.diskBytes)
                    },
                    text: { "\($0.diskEntries)" }),
                .integer("variants", \.variantsPerURL, in: 1...1024),
                ConfigurationKey(
                    "path", \.path,
                    byDefault: "$XDG_STATE_HOME/pinfold, or ~/.local/state/pinfold",
                    reading: { $1.filePath() }, text: YAMLText.quoted),
                .bytes("maximumObject", \.maximumObjectBytes, in: 1...most),
                .choice("fill", \.fill),
                ConfigurationKey(
                    "bypassFields", \.bypassFields,
                    byDefault: "X-Forwarded-Host and twelve more, see config/pinfold.yaml",
                    reading: { $0.fieldNames($1) }, text: YAMLText.list),
                purgeKey, sharedKey,
            ])
    }

    /// The default number of entries: one per 2 KiB of disk, since smaller responses are rare. It
    /// is bounded because each entry takes memory, whether it is used or not.
    static func automaticEntries(diskBytes: Int) -> Int {
        min(max(diskBytes / 2048, 1_000), 5_000_000)
    }
}

extension SnapshotReader {
    /// The two tiers of the cache.
    func cache(_ field: Field?) -> CacheConfiguration {
        var defaults = CacheConfiguration()
        defaults.memoryBytes = automaticBytes(most: defaults.memoryBytes)
        var (cache, section) = read(field, by: CacheConfiguration.table, over: defaults)
        if cache.path.isEmpty { cache.path = defaultCachePath(section) }
        warnOfCachePath(cache, section)
        if cache.shared != nil, !cache.isEnabled {
            section?["shared"]?.warn("is not used, because cache.enabled is false")
        } else if cache.shared != nil, cache.diskBytes == 0 {
            section?["shared"]?.warn(
                "is not told, because cache.disk is 0, what was purged while the engine was away "
                    + "if the gateway ends before it is back: others then serve it further")
        }
        return cache
    }

    /// Warns if the cache's folder cannot be used. This is not an error, because the cache then
    /// works in memory only.
    private func warnOfCachePath(_ cache: CacheConfiguration, _ section: Section?) {
        guard validation.environment.looksAtPaths, cache.isEnabled, cache.diskBytes > 0 else {
            return
        }
        let origin = section?["path"]?.node.origin
        let files = ["cache.sqlite", "cache.sqlite.lock"]
        let problem =
            PathAccess.problemMaking(folder: cache.path)
            ?? PathAccess.problemMaking(files: files, inFolder: cache.path)
        if let problem {
            return validation.warn(
                origin ?? .builtIn, "cache.path",
                "\(problem): nothing will be cached on disk")
        }
        guard let room = PathAccess.room(inFolder: cache.path) else { return }
        guard let problem = Self.problem(of: cache.diskBytes, in: room) else { return }
        validation.warn(
            section?["disk"]?.node.origin ?? origin ?? .builtIn, "cache.disk",
            "a disk cache of \(Quantity.text(bytes: cache.diskBytes)) \(problem) "
                + "(\(quoted(cache.path))): once that is full, nothing is cached on disk")
    }

    /// Why the disk tier cannot become that large, or `nil` if it can. The space that the cache's
    /// files already occupy counts as free.
    static func problem(of diskBytes: Int, in room: PathAccess.Room) -> String? {
        if diskBytes > room.total {
            return "exceeds the size of its file system, \(Quantity.text(bytes: room.total))"
        }
        guard diskBytes > room.free else { return nil }
        return "exceeds the free space of its file system, \(Quantity.text(bytes: room.free))"
    }

    private func defaultCachePath(_ section: Section?) -> String {
        if let folder = validation.environment.dataFolder { return folder }
        if section?["path"] == nil {
            validation.report(
                section?.field.node.origin ?? .builtIn, "cache.path",
                "has no default, because neither XDG_STATE_HOME nor HOME is set",
                expected: "the directory of cache.sqlite")
        }
        return "/"
    }
}

extension Field {
    /// The size of the disk tier: 0 for none, otherwise enough for at least a few responses.
    fileprivate func diskBytes(most: Int) -> Int? {
        guard let bytes = bytes(in: 0...most) else { return nil }
        if bytes != 0, bytes < 64 << 10 {
            fail(
                "\(Quantity.text(bytes: bytes)) is too small",
                expected: "0 for no disk tier, or at least 64KiB")
        }
        return bytes
    }

    /// The number of entries, or `nil` for `auto`.
    fileprivate func diskEntries() -> Int? {
        let most = 50_000_000
        if case .scalar("auto", _) = node.content { return nil }
        return parsed(expected: "auto, or a whole number from 1 to \(most)") {
            Int($0).flatMap { (1...most).contains($0) ? $0 : nil }
        }
    }
}
