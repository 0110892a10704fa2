package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Limits and times of watching a folder.
const (
	watchedDirsMax = 1000
	watchDebounce  = 100 * time.Millisecond // of quiet after a change, before what it is for runs
)

// watchPolicy runs f now and after each change of the folder, until ctx ends.
// What goes wrong in f is told, and watching goes on.
func (a *app) watchPolicy(ctx context.Context, dir string, f func(context.Context) error) error {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch %s: %w", dir, err)
	}
	defer w.Close()
	if err := watchTree(w, dir); err != nil {
		var p *fs.PathError
		if errors.As(err, &p) {
			err = p.Err
		}
		return &fault{Code: "unreadable", Message: fmt.Sprintf("watch %s: %v", dir, err), Exit: exitUsage, cause: err}
	}
	for {
		err := f(ctx)
		var status exitStatus
		if err != nil && !errors.As(err, &status) && ctx.Err() == nil {
			a.report(faultOf(err))
		}
		if ctx.Err() != nil {
			return nil // the end a person gives it
		}
		fmt.Fprintf(a.stdout, "%s\n", a.paint(dim, "watching "+safe(dir)+"; Ctrl-C ends"))
		if err := awaitChange(ctx, w); err != nil {
			return fmt.Errorf("watch %s: %w", dir, err)
		}
		if ctx.Err() != nil {
			return nil
		}
	}
}

// watchTree watches a folder and all below it that are not hidden.
func watchTree(w *fsnotify.Watcher, dir string) error {
	return filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case !d.IsDir():
			return nil
		case name != dir && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case len(w.WatchList()) == watchedDirsMax:
			return fmt.Errorf("there are more than %d folders", watchedDirsMax)
		}
		return w.Add(name)
	})
}

// awaitChange returns when a file changed and nothing has since for a while, or
// when ctx ends.
func awaitChange(ctx context.Context, w *fsnotify.Watcher) error {
	var quiet <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-quiet:
			return nil
		case err := <-w.Errors:
			return err
		case event := <-w.Events:
			if event.Has(fsnotify.Create) {
				// It may be a folder, and it may be gone again by now.
				_ = watchTree(w, event.Name)
			}
			if ofPolicy(event) {
				quiet = time.After(watchDebounce)
			}
		}
	}
}

// ofPolicy reports whether an event can have changed what tests come to.
func ofPolicy(event fsnotify.Event) bool {
	switch filepath.Ext(event.Name) {
	case ".rego", ".yaml", ".yml", ".json":
		return event.Op != fsnotify.Chmod
	}
	// A folder that was moved here or away brings its files along.
	return filepath.Ext(event.Name) == "" && (event.Has(fsnotify.Create) || event.Has(fsnotify.Remove) || event.Has(fsnotify.Rename))
}
