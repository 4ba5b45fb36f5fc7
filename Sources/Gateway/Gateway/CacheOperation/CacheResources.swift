extension AdminResource {
    /// The resources that show and change what is stored.
    /// - Parameter cache: `nil` if nothing is stored; the resources then say so.
    static func ofCache(_ cache: CacheAdministration?) -> [AdminResource] {
        [
            purge(cache), purgeProgress(cache), entries(cache), entry(cache), stats(cache),
            export(cache), `import`(cache),
        ]
    }
}
